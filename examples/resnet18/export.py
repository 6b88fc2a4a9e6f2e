"""Exports a ResNet-18 for small images from PyTorch: resnet18.onnx, its structure only (the recipe initialises the weights).

    .venv/bin/python examples/resnet18/export.py [OUTPUT]      (scripts/install-peers makes .venv)

The same PyTorch writes the same bytes.
"""
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from structure import NAMING, export_structure

CLASSES = 36


def convolution(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """He et al., Deep residual learning for image recognition, arXiv:1512.03385, figure 5; attributes as in torchvision."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = convolution(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """[batch, 1, 32, 32] images to logits. The stem is a 3x3 convolution without a pool, as is usual for images this small."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = convolution(1, 64, 3, 1), nn.BatchNorm2d(64)
        inputs = 64
        for index, outputs in enumerate((64, 128, 256, 512)):
            stride = 1 if index == 0 else 2
            setattr(self, f"layer{index + 1}", nn.Sequential(BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1)))
            inputs = outputs
        self.fc = nn.Linear(512, CLASSES)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


if __name__ == "__main__":
    torch.manual_seed(0)
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("resnet18.onnx")
    export_structure(ResNet18(), torch.zeros(2, 1, 32, 32), ["x", "logits"], {0: ("batch", 2, 65536)}, output, NAMING)
