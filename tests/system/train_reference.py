"""The training of examples/train.cc, written again from its description: one worker, pure Python.

    train_reference.py [STEPS [SAMPLES]]     prints the loss of every step
"""
import math
import sys
from operator import mul

LAYERS = (2, 32, 32, 1)
RATE, BETA1, BETA2, EPSILON = 0.01, 0.9, 0.999, 1e-8


def uniform(seed):
    """splitmix64, as a function of (low, high)."""
    state = seed

    def between(low, high):
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return low + (high - low) * (((z ^ (z >> 31)) >> 11) * 2.0**-53)

    return between


def two_spirals(count):
    between = uniform(1)
    for i in range(count):
        arm = 1 - 2 * (i % 2)
        radius = math.sqrt(between(0.01, 1))
        angle = radius * 2 * 2 * math.pi
        dx, dy = between(-0.03, 0.03), between(-0.03, 0.03)
        yield [arm * radius * math.cos(angle) + dx, arm * radius * math.sin(angle) + dy], arm


def first_parameters():
    """[weights, biases] of each layer; weights are a row for each unit."""
    between = uniform(100)
    layers = []
    for fan_in, units in zip(LAYERS, LAYERS[1:]):
        scale = math.sqrt(3 / fan_in)
        rows = [[between(-scale, scale) for _ in range(fan_in)] for _ in range(units)]
        layers.append([rows, [0.0] * units])
    return layers


def forward(layers, inputs):
    """The values of all layers, the inputs first."""
    values = [inputs]
    for depth, (rows, biases) in enumerate(layers):
        sums = [sum(map(mul, row, values[-1])) + bias for row, bias in zip(rows, biases)]
        values.append(sums if depth + 1 == len(layers) else list(map(math.tanh, sums)))
    return values


def add_gradient(layers, values, slope, gradient):
    slopes = [slope]
    for (rows, _), (d_rows, d_biases), inputs in zip(layers[::-1], gradient[::-1], values[-2::-1]):
        back = [0.0] * len(inputs)
        for unit, s in enumerate(slopes):
            d_biases[unit] += s
            d_rows[unit] = [d + s * x for d, x in zip(d_rows[unit], inputs)]
            back = [b + s * w for b, w in zip(back, rows[unit])]
        slopes = [b * (1 - x * x) for b, x in zip(back, inputs)]


def flat(layers):
    return [x for rows, biases in layers for x in sum(rows, []) + biases]


def shaped(values):
    values = iter(values)
    return [[[[next(values) for _ in range(fan_in)] for _ in range(units)],
             [next(values) for _ in range(units)]] for fan_in, units in zip(LAYERS, LAYERS[1:])]


def losses(steps, samples=600):
    """Of every step; about 0.3 ms for each sample in it."""
    seen = []
    data = list(two_spirals(samples))
    parameters = flat(first_parameters())
    mean, square = [0.0] * len(parameters), [0.0] * len(parameters)
    for step in range(1, steps + 1):
        layers, gradient, loss = shaped(parameters), shaped([0.0] * len(parameters)), 0.0
        for point, arm in data:
            values = forward(layers, point)
            margin = arm * values[-1][0]
            loss += math.log1p(math.exp(-margin)) / samples
            add_gradient(layers, values, -arm / (1 + math.exp(margin)) / samples, gradient)
        seen.append(loss)
        for i, g in enumerate(flat(gradient)):
            mean[i] = BETA1 * mean[i] + (1 - BETA1) * g
            square[i] = BETA2 * square[i] + (1 - BETA2) * g * g
            scale = math.sqrt(square[i] / (1 - BETA2**step)) + EPSILON
            parameters[i] -= RATE * mean[i] / (1 - BETA1**step) / scale
    return seen


if __name__ == "__main__":
    for value in losses(*map(int, sys.argv[1:])):
        print(f"{value:.17g}")
