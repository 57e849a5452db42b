#!/usr/bin/env bash
# tokenizers 0.23.3 (Python): the NFC normalizer has the tables of Unicode 9, while its regular expressions know Unicode 16.
# A combining mark that is younger than Unicode 9 counts as a letter of its own: marks behind it are neither reordered nor
# composed. Token ids of such texts (N'Ko, Indic and other scripts) differ from those of an encoder that uses the NFC of
# its platform. Seen:
#   e U+07FD U+0301: library U+0065 U+07FD U+0301, Python U+00E9 U+07FD
#   U+105C9 is a letter for the library: True; U+105D2 U+0307 becomes U+105D2 U+0307
# Exits with 1 if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet tokenizers==0.23.3
"$folder/python/bin/python" - <<'PYTHON'
import sys
import unicodedata
from tokenizers import Regex, normalizers

points = lambda text: " ".join(f"U+{ord(letter):04X}" for letter in text)
nfc = normalizers.NFC().normalize_str
mark = "e\u07fd\u0301"
print(f"e U+07FD U+0301: library {points(nfc(mark))}, Python {points(unicodedata.normalize('NFC', mark))}")

# Of a mark of Unicode 9 and of U+105C9, a composition of Unicode 16, whose regular expressions know the letter.
old = "e\u0327\u0301"
letter = normalizers.Replace(Regex(r"\p{L}"), "x").normalize_str("\U000105c9")
print(f"U+105C9 is a letter for the library: {letter == 'x'}; U+105D2 U+0307 becomes {points(nfc(chr(0x105D2) + chr(0x307)))}")
differ = [
    code
    for code in range(0x300, 0x20000)
    if unicodedata.combining(chr(code)) and nfc(f"e{chr(code)}\u0327\u0301") != unicodedata.normalize("NFC", f"e{chr(code)}\u0327\u0301")
]
print(len(differ), "marks with another result, from", points(chr(differ[0])))
seen = (nfc(mark), nfc(old) == unicodedata.normalize("NFC", old), letter, len(differ) > 20)
sys.exit(seen != (mark, True, "x", True))
PYTHON
