"""Makes the files for a server: a TorchScript model, a request and the expected answer.

Run as a program in the server's environment, once for each model.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from corebound.worker import protocol
from corebound.worker.adapters import pytorch
from corebound.worker.workloads import served_classifier

# A typical scaled photograph: about 110 KB as JPEG.
REQUEST_SIZE = (640, 480)


def main() -> None:
    """Write the model, a request in two forms and the expected answer into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--image", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--onnx", action="store_true", help="write the model as ONNX, too")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    os.environ[protocol.SERVED_IMAGE] = str(options.image)
    torch.manual_seed(options.seed)
    jpeg = picture(options.seed)
    network = getattr(pytorch.torchvision().models, options.model)(weights=None).eval()
    sample = torch.from_numpy(served_classifier.prepare(jpeg))
    with torch.inference_mode():
        script = torch.jit.trace(network, sample)
        answer = served_classifier.top(script(sample).numpy())
    script.save(options.out / "model.pt")
    if options.onnx:
        # The other exporter needs a package more.
        torch.onnx.export(network, (sample,), options.out / "model.onnx", dynamo=False)
    (options.out / "image.jpg").write_bytes(jpeg)
    body = json.dumps({"image": base64.b64encode(jpeg).decode("ascii")})
    (options.out / "image.json").write_text(body, encoding="ascii")
    (options.out / "expected.json").write_text(json.dumps(answer), encoding="utf-8")


def picture(seed: int) -> bytes:
    """A seeded JPEG of smooth colours with some noise, as hard to decode as a photograph."""
    numbers = np.random.default_rng(seed)
    width, height = REQUEST_SIZE
    coarse = Image.fromarray(numbers.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
    noisy = smooth + numbers.integers(-24, 25, smooth.shape, dtype=np.int16)
    out = io.BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=85)
    return out.getvalue()


if __name__ == "__main__":
    main()
