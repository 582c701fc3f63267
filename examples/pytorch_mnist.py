#!/usr/bin/env python3
"""Noisy digits with PyTorch, on as many workers as you start.

    horovodrun -np 4 python examples/pytorch_mnist.py          four workers on this machine
    python examples/pytorch_mnist.py                           the same script, alone

Each worker trains on its share of the images, and before each step the workers average their gradients.  Lines that
make a script for one process into one for many are marked with (1) to (6).  The images are drawn here, as bitmaps that
are turned, moved, scaled and covered with noise, so nothing is downloaded.
"""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd  # (1) the only import

FONT = """
.###. ..#.. .###. .###. ...#. ##### .###. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... #.... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ..##. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ....#
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .###.
"""


def draw_digits(count: int, seed: int) -> TensorDataset:
    """`count` images of 28 × 28 pixels, and which digit is on each.  The same seed draws the same images."""
    rows = [line.split() for line in FONT.split("\n") if line]
    font = torch.tensor([[[float(pixel == "#") for pixel in row[digit]] for row in rows] for digit in range(10)])
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=random)
    angle, zoom, shift_x, shift_y = (torch.rand(4, count, generator=random) * 2 - 1) * torch.tensor(
        [[0.35], [0.2], [0.35], [0.25]])
    zoom = 1.1 + zoom
    place = torch.stack([
        torch.stack([zoom * 1.6 * angle.cos(), -zoom * angle.sin(), shift_x], dim=1),
        torch.stack([zoom * angle.sin(), zoom * 1.2 * angle.cos(), shift_y], dim=1)], dim=1)
    grid = F.affine_grid(place, [count, 1, 28, 28], align_corners=False)
    images = F.grid_sample(font[labels].unsqueeze(1), grid, align_corners=False)
    return TensorDataset(images + 0.3 * torch.randn(images.shape, generator=random), labels)


class Net(nn.Module):
    """Two convolutions and two layers: small, so that it trains in seconds on a processor."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten())
        self.classes = nn.Sequential(nn.Linear(16 * 5 * 5, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(self.features(images))


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """The part of the images that the model gets right, over the shares of all workers."""
    images, labels = (tensor[hvd.rank()::hvd.size()] for tensor in data.tensors)
    model.eval()
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).double().sum()
    # (6) Each worker has tested its share: add up both numbers.
    total = hvd.allreduce(torch.stack([right, torch.tensor(float(len(labels)), dtype=torch.float64)]), op=hvd.Sum)
    return float(total[0] / total[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="images for each worker and step")
    parser.add_argument("--lr", type=float, default=0.01, help="for one worker")
    parser.add_argument("--images", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    hvd.init()  # (2) meet the other workers; hvd.rank() is this worker's number, hvd.size() how many there are
    torch.manual_seed(args.seed + hvd.rank())
    if hvd.rank() == 0:
        print(f"{args.images} images, {hvd.size()} worker{'s' if hvd.size() > 1 else ''}, "
              f"{args.batch_size * hvd.size()} images a step", flush=True)

    train, test = draw_digits(args.images, seed=args.seed), draw_digits(1024, seed=args.seed + 1)
    # (3) Each worker gets its own share of the images, another one in each epoch.
    sampler = DistributedSampler(train, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(train, batch_size=args.batch_size, sampler=sampler)

    model = Net()
    # (4) N workers see N times as many images a step, so the step may be longer; and with the wrapped optimizer,
    #     step() uses the average of all workers' gradients.
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * min(hvd.size(), 4), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    # (5) All begin with the same weights: those of worker 0.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    for epoch in range(1, args.epochs + 1):
        began = time.monotonic()
        model.train()
        sampler.set_epoch(epoch)
        loss_sum = torch.zeros(())
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            loss_sum += loss.detach()
        loss = hvd.allreduce(loss_sum / len(loader))
        speed = len(loader) * args.batch_size * hvd.size() / (time.monotonic() - began)
        right = accuracy(model, test)
        if hvd.rank() == 0:  # one line and not one for each worker
            print(f"epoch {epoch}   loss {loss:.4f}   right {right:6.1%} of the test images   {speed:6.0f} images/s",
                  flush=True)


if __name__ == "__main__":
    main()
