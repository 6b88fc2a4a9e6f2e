#!/usr/bin/env python3
"""Renders glyphs of installed fonts to small images: the data set of two demos, from what every machine has.

    make_data.py OUTPUT [--size 28] [--fonts DIRECTORY] [--jitters 60] [--seed 0]

Writes OUTPUT/train.npz and OUTPUT/eval.npz, each {x: uint8 [N, 1, size, size], targets: int64 [N]}; the class of a
sample is the index of its character in CLASSES. Each glyph (font, character) is drawn many times under random
rotation, shear, scale and shift. One font of each character, another one from character to character, is held out:
whatever the model sees in eval is a shape that it was never trained on, under any jitter.

Deterministic: the same fonts, options and Pillow give the same bytes. Default fonts: the six of the Debian package
fonts-dejavu-core; with --fonts, all .ttf and .otf files below DIRECTORY that can draw every class.
Needs numpy and Pillow.
"""
import argparse
import math
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

CLASSES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DRAWN = 56  # a glyph is drawn twice as large and reduced to this, so that sampling it down misses no stroke
CORE = ["DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSerif", "DejaVuSerif-Bold"]


def core_fonts():
    return [Path("/usr/share/fonts/truetype/dejavu") / f"{name}.ttf" for name in CORE]


def draw(font, character):
    """The glyph, centred in a square image; white on black."""
    side = 2 * DRAWN
    image = Image.new("L", (side, side))
    left, top, right, bottom = font.getbbox(character)
    place = ((side - left - right) / 2, (side - top - bottom) / 2)
    ImageDraw.Draw(image).text(place, character, fill=255, font=font)
    return image.reduce(2)


def glyphs(path):
    """{character: image} of a font, or None if it cannot draw every class (it lacks one, or two look the same)."""
    try:
        font = ImageFont.truetype(str(path), int(2 * DRAWN * 0.8), layout_engine=ImageFont.Layout.BASIC)
    except OSError:
        return None
    images = {character: draw(font, character) for character in CLASSES}
    bitmaps = {image.tobytes() for image in images.values()}
    missing = draw(font, "\U0010ffff").tobytes()
    return images if len(bitmaps) == len(CLASSES) and missing not in bitmaps else None


def jitter(image, size, random):
    """One sample of size x size: a random affine map about the centre, strength chosen to look like careless print."""
    angle = math.radians(random.uniform(-12, 12))
    shear = random.uniform(-0.2, 0.2)
    width, height = random.uniform(0.85, 1.15, 2) * DRAWN / size
    dx, dy = random.uniform(-2, 2, 2)
    cosine, sine = math.cos(angle), math.sin(angle)
    a, b = width * (cosine + shear * sine), width * (-sine + shear * cosine)
    d, e = height * sine, height * cosine
    middle = size / 2
    c = DRAWN / 2 - a * (middle + dx) - b * (middle + dy)
    f = DRAWN / 2 - d * (middle + dx) - e * (middle + dy)
    return image.transform((size, size), Image.Transform.AFFINE, (a, b, c, d, e, f), Image.Resampling.BILINEAR)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--size", type=int, default=28, help="pixels of a side, at most 56")
    parser.add_argument("--fonts", type=Path, help="take all fonts below this folder")
    parser.add_argument("--jitters", type=int, default=60, help="samples of each glyph")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    if not 8 <= arguments.size <= DRAWN:
        parser.error(f"--size {arguments.size} is not in 8 to {DRAWN}")
    paths = core_fonts()
    if arguments.fonts:
        paths = sorted(path for path in arguments.fonts.rglob("*") if path.suffix.lower() in (".ttf", ".otf"))
    drawn = {path: glyphs(path) for path in paths}
    fonts = [path for path in paths if drawn[path]]
    if len(fonts) < 3:
        print(f"make_data: {len(fonts)} of {len(paths)} fonts can draw {CLASSES}, at least 3 are needed: "
              "apt-get install fonts-dejavu-core, or name a folder with --fonts", file=sys.stderr)
        return 1

    random = np.random.default_rng(arguments.seed)
    parts = {"train": [], "eval": []}
    for index, path in enumerate(fonts):
        for label, character in enumerate(CLASSES):
            part = "eval" if label % len(fonts) == index else "train"
            image = drawn[path][character]
            parts[part] += [(np.asarray(jitter(image, arguments.size, random)), label) for _ in range(arguments.jitters)]

    arguments.output.mkdir(parents=True, exist_ok=True)
    for part, samples in parts.items():
        x = np.stack([image for image, _ in samples])[:, None]
        np.savez(arguments.output / f"{part}.npz", x=x, targets=np.array([label for _, label in samples], np.int64))
        print(f"make_data: {part}.npz: {len(x)} samples of {len(samples) // arguments.jitters} glyphs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
