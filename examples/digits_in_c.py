"""Reads handwritten digits in a C program: the net of digits_conv.rlx as C99, without Python or a runtime."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import relaxlang
from relaxlang.transform import BindSymbolicVars

HERE = Path(__file__).parent
# All of the program that is not made by relaxlang: an image in on stdin, the digit out, until there are no more.
READER = """\
#include <stdio.h>
#include "digits.h"

int main(void) {
  static float image[64], scores[10];
  const struct digits_inputs in = {image};
  const struct digits_outputs out = {scores};
  while (fread(image, sizeof image, 1, stdin) == 1) {
    int32_t status = digits_run(&in, &out), best = 0;
    if (status) return fprintf(stderr, "%s\\n", digits_message(status)), 1;
    for (int32_t k = 1; k < 10; ++k) if (scores[k] > scores[best]) best = k;
    putchar('0' + best);
  }
  return 0;
}
"""


def main() -> None:
    one_image = BindSymbolicVars((("n", 1),))(relaxlang.load(HERE / "digits_conv.rlx"))
    library = relaxlang.build(
        one_image,
        target="c",
        executor=relaxlang.Executor("aot", {"unpacked-api": True, "interface-api": "c"}),
        runtime=relaxlang.Runtime("c"),
        params=dict(np.load(HERE / "digits_conv_weights.npz")),
        mod_name="digits",
    )
    sizes = library.library.report["digits"]
    print(f"weights {sizes['constant_bytes']} bytes, workspace {sizes['workspace_bytes']} bytes")

    data = np.load(HERE / "digits_test.npz")
    images = (data["images"] / 16).astype("float32")
    with tempfile.TemporaryDirectory() as folder:
        library.export_library(Path(folder) / "digits.c")
        (Path(folder) / "reader.c").write_text(READER)
        compiler = shutil.which("cc")
        if compiler is None:
            print("there is no C compiler here; digits.c and digits.h would be its input")
            return
        command = [compiler, "-std=c99", "-Os", "-Wall", "-Werror", "reader.c", "digits.c", "-o", "reader", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        answers = subprocess.run([Path(folder) / "reader"], input=images.tobytes(), capture_output=True, check=True)
        print(f"program {(Path(folder) / 'reader').stat().st_size} bytes")
    read = np.array([int(digit) for digit in answers.stdout.decode()])
    print(f"{len(read)} images: accuracy {(read == data['labels']).mean():.3f}")


if __name__ == "__main__":
    main()
