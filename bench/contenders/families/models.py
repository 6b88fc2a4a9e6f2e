"""The networks of the benchmark of model families, as their papers have them. Outputs are logits, classes last."""
import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    """Two convolutions of 3 x 3 beside a shortcut (He et al., arXiv:1512.03385)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.downsample(x))


class ResNet18(nn.Module):
    """For images of 32 x 32: a first convolution of 3 x 3, without a pool."""

    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        widths = [64, 64, 128, 256, 512]
        self.layers = nn.Sequential(*(nn.Sequential(Residual(before, width, 1 if i == 0 else 2), Residual(width, width, 1))
                                      for i, (before, width) in enumerate(zip(widths, widths[1:]))))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        return self.fc(self.layers(self.stem(x)).mean((2, 3)))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, inner):
        super().__init__()
        self.reduce = nn.Conv2d(channels, inner, 1)
        self.expand = nn.Conv2d(inner, channels, 1)

    def forward(self, x):
        scale = F.adaptive_avg_pool2d(x, 1)
        return x * F.hardsigmoid(self.expand(F.relu(self.reduce(scale))))


class InvertedResidual(nn.Module):
    """A depthwise convolution between two of 1 x 1 (Howard et al., arXiv:1905.02244)."""

    def __init__(self, inputs, kernel, expanded, outputs, excites, activation, stride):
        super().__init__()
        def layer(before, after, taps, step, groups, act):
            return [nn.Conv2d(before, after, taps, step, taps // 2, groups=groups, bias=False), nn.BatchNorm2d(after, eps=1e-3, momentum=0.01), *act]
        parts = layer(inputs, expanded, 1, 1, 1, [activation()]) if expanded != inputs else []
        parts += layer(expanded, expanded, kernel, stride, expanded, [activation()])
        if excites:
            parts.append(SqueezeExcite(expanded, (expanded // 4 + 4) // 8 * 8))
        parts += layer(expanded, outputs, 1, 1, 1, [])
        self.block = nn.Sequential(*parts)
        self.joins = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.block(x) if self.joins else self.block(x)


class MobileNetV3Small(nn.Module):
    # kernel, expanded, outputs, squeeze-excite, hard swish, stride
    ROWS = [(3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2), (5, 240, 40, 1, 1, 1), (5, 240, 40, 1, 1, 1),
            (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1), (5, 288, 96, 1, 1, 2), (5, 576, 96, 1, 1, 1), (5, 576, 96, 1, 1, 1)]

    def __init__(self, classes=10):
        super().__init__()
        layers, inputs = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16, eps=1e-3, momentum=0.01), nn.Hardswish()], 16
        for kernel, expanded, outputs, excites, swishes, stride in self.ROWS:
            layers.append(InvertedResidual(inputs, kernel, expanded, outputs, excites, nn.Hardswish if swishes else nn.ReLU, stride))
            inputs = outputs
        layers += [nn.Conv2d(inputs, 576, 1, bias=False), nn.BatchNorm2d(576, eps=1e-3, momentum=0.01), nn.Hardswish()]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Linear(576, 1024), nn.Hardswish(), nn.Linear(1024, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


class UNet(nn.Module):
    """Four levels, GroupNorm behind each convolution, up by transposed convolutions (Ronneberger et al., arXiv:1505.04597)."""

    def __init__(self, base=32, levels=4, classes=4):
        super().__init__()
        def twice(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU(),
                                 nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU())
        widths = [base << level for level in range(levels)]
        self.down = nn.ModuleList(twice(before, width) for before, width in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, 2) for width in widths[:-1])
        self.join = nn.ModuleList(twice(2 * width, width) for width in widths[:-1])
        self.out = nn.Conv2d(base, classes, 1)

    def forward(self, x):
        left = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if level else x)
            left.append(x)
        for level in reversed(range(len(self.up))):
            x = self.join[level](torch.cat([left[level], self.up[level](x)], 1))
        return self.out(x).permute(0, 2, 3, 1)


class Lstm(nn.Module):
    """Two layers behind an embedding; the next of each word."""

    def __init__(self, words=1000, width=512):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        return self.head(self.lstm(self.embedding(ids))[0])


MODELS = {"resnet18": ResNet18, "mobilenet": MobileNetV3Small, "unet": UNet, "lstm": Lstm}  # by the name of the row
