"""A FastAPI application with a small network of PyTorch: `uvicorn app:app --workers N`."""

import torch
from fastapi import FastAPI

app = FastAPI()
_layers = [torch.nn.Linear(512, 512) for _ in range(8)]
_network = torch.nn.Sequential(*(one for layer in _layers for one in (layer, torch.nn.ReLU())))
_batch = torch.randn(64, 512)


async def predict() -> float:
    """The sum of a batch's outputs."""
    with torch.inference_mode():
        return float(_network(_batch).sum())


app.add_api_route("/predict", predict)
