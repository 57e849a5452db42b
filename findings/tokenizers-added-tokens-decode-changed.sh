#!/usr/bin/env bash
# tokenizers 0.23.3 (Python): an added token that is neither special nor `normalized=False` does not decode to its text.
# With the normalizer of Llama 2 vocabularies (Prepend "▁"), id_to_token and decode return the normalized form with a space
# in front; with a byte-level decoder, letters such as "é" are read as letters for bytes, and become U+FFFD. Encoding finds the
# token in both cases, so that a text does not survive encode and decode. Seen:
#   id_to_token: ▁[tool]
#   x[tool] -> x [tool]
#   é| -> �|
# Exits with 1 if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet tokenizers==0.23.3
"$folder/python/bin/python" - <<'PYTHON'
import sys
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

spaced = Tokenizer(models.BPE(vocab={"▁": 0, "x": 1, "▁x": 2}, merges=[("▁", "x")]))
spaced.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
spaced.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
spaced.add_tokens([AddedToken("[tool]")])
tool = spaced.get_vocab_size() - 1
text = spaced.decode([2, tool])

letters = sorted(pre_tokenizers.ByteLevel.alphabet())
level = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(letters)}, merges=[]))
level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
level.decoder = decoders.ByteLevel()
level.add_tokens([AddedToken("é|")])
ids = level.encode("é|").ids

print("id_to_token:", spaced.id_to_token(tool))
print("x[tool] ->", text)
print("é| ->", level.decode(ids))
seen = (spaced.id_to_token(tool), text, len(ids), level.decode(ids))
sys.exit(seen != ("▁[tool]", "x [tool]", 1, "\ufffd|"))
PYTHON
