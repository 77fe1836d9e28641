"""The network for PathMNIST that an operator trusts, as its description gives it.

uint8 images (n, 28, 28, 3) to nine logits. The weights are not in the repository.
"""

import torch
from torch.nn import functional

CHANNELS = ((32, True), (64, True), (128, False), (128, True))
"""Of each block, and whether it ends in a pool."""
CLASSES = (
    "adipose",
    "background",
    "debris",
    "lymphocytes",
    "mucus",
    "smooth muscle",
    "normal colon mucosa",
    "cancer-associated stroma",
    "colorectal adenocarcinoma epithelium",
)
SHAPE = (28, 28, 3)


class Block(torch.nn.Module):
    """A convolution, normalized and rectified, and a pool where there is one."""

    def __init__(self, inputs: int, outputs: int, pool: bool) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn = torch.nn.BatchNorm2d(outputs)
        self.pool = pool

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found = functional.relu(self.bn(self.conv(images)))
        return functional.max_pool2d(found, 2) if self.pool else found


class Network(torch.nn.Module):
    """Four blocks, the mean over all places, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        inputs = [3, *(outputs for outputs, _ in CHANNELS)]
        self.blocks = torch.nn.ModuleList(
            Block(before, outputs, pool)
            for before, (outputs, pool) in zip(inputs, CHANNELS, strict=False)
        )
        self.fc = torch.nn.Linear(inputs[-1], len(CLASSES))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found = (images.permute(0, 3, 1, 2).float() / 255 - 0.6) / 0.2
        for block in self.blocks:
            found = block(found)
        logits: torch.Tensor = self.fc(found.mean((2, 3)))
        return logits
