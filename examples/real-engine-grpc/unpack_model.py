"""Makes a folder that engines load of a Llama model in a GGUF file: configuration, tokenizer, chat template, weights."""

import json
import pathlib
import sys

import gguf
import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CONTROL = 3
BLOCK = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}


def name_of(name):
    if name in WHOLE:
        return WHOLE[name]
    _, number, part, kind = name.split(".")
    return f"model.layers.{number}.{BLOCK[part]}.{kind}"


def in_halves(weight, heads):
    """The file has the rows of a head in pairs, for its rotation; engines want both halves one after the other."""
    rows = weight.shape[0] // heads
    return weight.reshape(heads, rows // 2, 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def main(source, target, dtype="float16"):
    reader = gguf.GGUFReader(source)
    value = lambda key: reader.fields[key].contents()  # noqa: E731
    folder = pathlib.Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    heads = value("llama.attention.head_count")
    kv_heads = value("llama.attention.head_count_kv")

    weights = {}
    for tensor in reader.tensors:
        weight = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if ".attn_q." in tensor.name:
            weight = in_halves(weight, heads)
        elif ".attn_k." in tensor.name:
            weight = in_halves(weight, kv_heads)
        weights[name_of(tensor.name)] = np.ascontiguousarray(weight.astype(dtype))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    tokens = value("tokenizer.ggml.tokens")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": dtype,
        "vocab_size": len(tokens),
        "hidden_size": value("llama.embedding_length"),
        "intermediate_size": value("llama.feed_forward_length"),
        "num_hidden_layers": value("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": value("llama.context_length"),
        "rms_norm_eps": value("llama.attention.layer_norm_rms_epsilon"),
        "rope_theta": value("llama.rope.freq_base"),
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "bos_token_id": value("tokenizer.ggml.bos_token_id"),
        "eos_token_id": value("tokenizer.ggml.eos_token_id"),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))

    merges = [tuple(merge.split(" ")) for merge in value("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={token: at for at, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    types = value("tokenizer.ggml.token_type")
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token, kind in zip(tokens, types) if kind == CONTROL]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    eos = tokens[value("tokenizer.ggml.eos_token_id")]
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": eos,
        "pad_token": eos,
        "model_max_length": value("llama.context_length"),
        "chat_template": value("tokenizer.chat_template"),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
