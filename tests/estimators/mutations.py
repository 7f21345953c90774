"""How a model file can be damaged."""

import math
import struct


def mutate_bytes(data, chance):
    data = bytearray(data)
    kind = chance.randrange(5)
    if kind == 0:
        for _ in range(chance.choice([1, 1, 2, 8])):
            data[chance.randrange(len(data))] = chance.randrange(256)
    elif kind == 1:
        del data[chance.randrange(len(data)) :]
    elif kind == 2:
        begin = chance.randrange(len(data))
        del data[begin : begin + chance.randrange(1, 40)]
    elif kind == 3:
        begin = chance.randrange(len(data))
        data[begin:begin] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
    else:  # the length of the header
        data[:8] = struct.pack("<Q", chance.choice([0, 1, 7, len(data), 2**31, 2**63, 2**64 - 1]))
    return bytes(data)


def mutate_manifest(value, chance):
    """Change one leaf of a manifest, or drop or repeat an entry."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        if chance.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: mutate_manifest(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        if chance.random() < 0.2:
            return value[:place] + value[place + 1 :]
        return [*value[:place], mutate_manifest(value[place], chance), *value[place + 1 :]]
    return chance.choice(
        [None, True, -1, 0, 1, 2, 10**9, 10**400, 1e308, -0.5, float("nan"), float("inf"), "",
         "x", "x" * 100, "../../x", [], {}, [[]], {"a": {}}, "mlp", "resnet", "<U99999999", "|V9"]
    )  # fmt: skip


def mutate_sizes(tensors, chance):
    """Declare other sizes, in one tensor or in all: what was 8 long is 0, 1 or huge everywhere."""
    sizes = sorted({size for tensor in tensors.values() for size in tensor.shape})
    new = {size: chance.choice([0, 0, 1, 2, 2**12, 2**20]) for size in chance.sample(sizes, 2)}
    changed = chance.choice([list(tensors), [chance.choice(sorted(tensors))]])
    return {
        name: resized(tensor, new, chance) if name in changed else tensor
        for name, tensor in tensors.items()
    }


def resized(tensor, new, chance):
    shape = [new.get(size, size) for size in tensor.shape]
    if math.prod(shape) > 10_000:  # a file holds what it declares: a huge tensor is empty
        shape[chance.randrange(len(shape))] = 0
    return tensor.new_ones(shape)
