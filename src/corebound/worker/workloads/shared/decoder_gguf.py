"""The decoder as a model file of llama.cpp (GGUF), with the weights that every runtime has."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from corebound.worker.workloads.shared import decoder

# The types of tokens in llama.h: the unknown one, those that control, bytes, and words.
_TYPES = (2, 3, 3, *(6,) * 256, *(1,) * (decoder.VOCABULARY - decoder.FIRST_WORD))
# The names of a layer's weights in GPT-2's GGUF layout, by ours.
_IN_LAYER = {
    "_norm": "attn_norm",
    "_projection": "attn_qkv",
    "_output": "attn_output",
    "_perceptron.0": "ffn_norm",
    "_perceptron.1": "ffn_up",
    "_perceptron.3": "ffn_down",
}
_OUTSIDE = {
    "_tokens": "token_embd",
    "_positions": "position_embd",
    "_norm": "output_norm",
    "_head": "output",
}


def write(path: Path, *, context: int, dtype: str) -> None:
    """Write the model file.

    Args:
        path: The file to create, with the ending `.gguf`.
        context: The number of positions.
        dtype: `float32`; or `int8`: matrices are quantized to Q8_0, in which 32 numbers share a
            scale. Biases, norms and positions stay in float32, as llama.cpp's own tool leaves them.
    """
    is_float = dtype == "float32"
    file = gguf.GGUFWriter(path, "gpt2")
    file.add_name("decoder")
    file.add_file_type(gguf.LlamaFileType.ALL_F32 if is_float else gguf.LlamaFileType.MOSTLY_Q8_0)
    file.add_context_length(context)
    file.add_embedding_length(decoder.WIDTH)
    file.add_block_count(decoder.LAYERS)
    file.add_feed_forward_length(decoder.INNER_WIDTH)
    file.add_head_count(decoder.HEADS)
    file.add_layer_norm_eps(decoder.EPSILON)
    _add_vocabulary(file)
    eight_bits = gguf.GGMLQuantizationType.Q8_0
    for name, values in decoder.weights(context).items():
        if is_float or values.ndim == 1 or name == "_positions.weight":
            file.add_tensor(_name(name), values)
        else:
            quantized = gguf.quants.quantize(values, eight_bits)
            file.add_tensor(_name(name), quantized, raw_dtype=eight_bits)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def _name(name: str) -> str:
    """A weight's name in the file.

    >>> _name("_layers.2._perceptron.1.bias"), _name("_head.weight")
    ('blk.2.ffn_up.bias', 'output.weight')
    """
    part, _, kind = name.rpartition(".")
    if not part.startswith("_layers."):
        return f"{_OUTSIDE[part]}.{kind}"
    _, layer, module = part.split(".", 2)
    return f"blk.{layer}.{_IN_LAYER[module]}.{kind}"


def _add_vocabulary(file: gguf.GGUFWriter) -> None:
    """Add tokens, so that a server can write what it generates as text."""
    bytes_ = (f"<0x{byte:02X}>" for byte in range(256))
    # SentencePiece writes a blank as this sign.
    words = (f"\u2581w{number}" for number in range(decoder.FIRST_WORD, decoder.VOCABULARY))
    file.add_vocab_size(decoder.VOCABULARY)
    file.add_tokenizer_model("llama")
    file.add_tokenizer_pre("default")
    file.add_token_list([*decoder.SPECIAL_TOKENS, *bytes_, *words])
    file.add_token_scores(np.zeros(decoder.VOCABULARY, np.float32).tolist())
    file.add_token_types(_TYPES)
    file.add_unk_token_id(0)
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
