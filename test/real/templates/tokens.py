"""Encodes and decodes texts with Python's tokenizers, to compare the gateway's token ids and texts with.

usage: tokens.py FOLDER [TOKENIZER.JSON ...]

Trains a small vocabulary of each kind into FOLDER/KIND/tokenizer.json, which is used beside the given files. Prints for each a
line with its path and for each text: the text, its ids, and the ids decoded with and without special tokens.
"""
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CORPUS = [
    "the quick brown fox jumps over the lazy dog. Hello there, isn't it?",
    "Grüße aus München, é è ê ä ö ü, 123 4567",
    "Привет как дела, 你好 世界 😀 🦄",
    "a b  c   d\n\n e\t f",
] * 5
BYTES = pre_tokenizers.ByteLevel.alphabet()
SPECIAL = [AddedToken("<|a|>"), AddedToken("<mask>", lstrip=True), AddedToken("<r>", rstrip=True), AddedToken("<｜u｜>")]
PLAIN = [
    AddedToken("[both]", lstrip=True, rstrip=True),
    AddedToken("word", single_word=True),
    AddedToken("é|", normalized=True),
    AddedToken("e\u0301!", normalized=True),
    AddedToken("Ġq", normalized=False),
]


def train(model, trainer, normalizer=None, pre_tokenizer=None, decoder=None):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def byte_level(normalizer):
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=BYTES, show_progress=False)
    return train(models.BPE(), trainer, normalizer, pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel())


def unigram(scheme):
    trainer = trainers.UnigramTrainer(vocab_size=120, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    metaspace = {"prepend_scheme": scheme}
    return train(
        models.Unigram(), trainer, normalizers.NFKC(), pre_tokenizers.Metaspace(**metaspace), decoders.Metaspace(**metaspace)
    )


def word_piece(cleanup):
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]", "[SEP]"], show_progress=False)
    return train(
        models.WordPiece(unk_token="[UNK]"),
        trainer,
        normalizers.BertNormalizer(),
        pre_tokenizers.BertPreTokenizer(),
        decoders.WordPiece(cleanup=cleanup),
    )


def byte_fallback():
    pieces = ["<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=pieces, show_progress=False)
    spaces = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    return train(
        models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True), trainer, spaces, None, decoders.Sequence(steps)
    )


def vocabularies(folder):
    kinds = {
        "bytes": byte_level(None),
        "nfc": byte_level(normalizers.NFC()),
        "fallback": byte_fallback(),
        "unigram": unigram("always"),
        "unigram-never": unigram("never"),
        "wordpiece": word_piece(True),
        "wordpiece-spaced": word_piece(False),
    }
    for kind, plain in list(kinds.items()):
        tokenizer = Tokenizer.from_str(plain.to_str())
        tokenizer.add_special_tokens(SPECIAL)
        tokenizer.add_tokens(PLAIN)
        kinds[f"{kind}-added"] = tokenizer
    # Added tokens that the gateway's own encoder supports.
    kinds["nfc-simple"] = byte_level(normalizers.NFC())
    kinds["nfc-simple"].add_tokens([token for token in PLAIN if not (token.lstrip or token.single_word)])
    for kind, tokenizer in kinds.items():
        path = folder / kind / "tokenizer.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(path))
        yield path, tokenizer


PARTS = [token.content for token in SPECIAL + PLAIN] + (
    ["a", "the", " ", "  ", "\n", "\t", "é", "e\u0301", "A\u030a", "\u1100\u1161", "\u0344", "\u2126", "ﬁ", "\u1e9b\u0323"]
    + ["isn't", "123", "Привет", "你", "😀", "\u200d", "\u00a0", "\u0307", "\u0328", "\u0301", ".", " .", " ,", "'s", "\r", "x"]
    + ["\u07fd", "\u0899", "\u0f71\u0f72", "\u3000", "\ufeff", "\x85", "İ", "|", "ing", "_"]
)

def letter():
    """Of blocks without letters that are younger than the library, whose regular expressions know Unicode 16."""
    return chr(random.randint(*random.choice([(32, 0x2FF), (0x300, 0x36F), (0x370, 0x880), (0x900, 0xC00), (0xAC00, 0xD7A3)])))


def texts():
    random.seed(7)
    for _ in range(400):
        yield "".join(random.choice(PARTS) for _ in range(random.randint(1, 14)))
    for _ in range(400):
        yield "".join(letter() for _ in range(random.randint(1, 12)))


all_texts = list(texts())
given = [(pathlib.Path(path), Tokenizer.from_file(path)) for path in sys.argv[2:]]
for path, tokenizer in [*vocabularies(pathlib.Path(sys.argv[1])), *given]:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rows = []
    for text in all_texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        decoded = [tokenizer.decode(ids, skip_special_tokens=skips) for skips in (False, True)]
        rows.append([text, ids, *decoded])
    print(json.dumps({"source": str(path.parent), "rows": rows}))
