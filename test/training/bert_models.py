"""Small encoders of text for the training references: [batch, LENGTH] token numbers to the logits of CLASSES."""
import torch
import torch.nn.functional as F
from torch import nn

from gpt_models import HEADS, LENGTH, VOCABULARY, WIDTH, rotate_half

CLASSES = 3


def unequal(module):
    """Norms and biases that are not all equal: no exporter may take two of them for one."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.05)
    return module


def classifier():
    """Hugging Face's BERT. Its table of words starts with the row of the padding token, all zeros."""
    from transformers import BertConfig, BertForSequenceClassification

    class Classifier(BertForSequenceClassification):
        def forward(self, input_ids):
            return super().forward(input_ids, return_dict=False)[0]

    return unequal(Classifier(BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=2 * WIDTH,
        max_position_embeddings=LENGTH, num_labels=CLASSES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)))


def with_padding():
    """The same with a padding row that is not zero, as a table has that was trained without one: what look-ups must not change shows."""
    module = classifier()
    with torch.no_grad():
        module.bert.embeddings.word_embeddings.weight[0].normal_(std=0.5)
    return module


def angles(width):
    return torch.arange(LENGTH)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)


class FixedPositions(nn.Module):
    """Sinusoidal positions in one table, sines and cosines in turn, and rotary ones in two."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        turns = angles(WIDTH)
        self.register_buffer("pe", torch.stack((turns.sin(), turns.cos()), dim=-1).view(LENGTH, 1, WIDTH))
        turns = angles(WIDTH // HEADS).repeat(1, 2)
        self.register_buffer("cos", turns.cos())
        self.register_buffer("sin", turns.sin())
        self.attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, input_ids):
        batch, length = input_ids.shape
        x = self.words(input_ids) + self.pe[:length].transpose(0, 1)
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2) for part in self.attn(x).chunk(3, dim=-1))
        q, k = (part * self.cos[:length] + rotate_half(part) * self.sin[:length] for part in (q, k))
        x = x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, WIDTH)
        return self.head(x.mean(1))


def with_fixed_positions():
    return unequal(FixedPositions())
