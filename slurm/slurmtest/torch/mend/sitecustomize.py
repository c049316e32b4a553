"""Mends torch 1.13's launcher under Python 3.11, where the parser of --redirects
and --tee gives None for "0" and "3" and every run dies. Later versions parse it
themselves. Python imports this module at start; torch is touched only once the
launcher imports the module in question."""

import importlib.util
import sys

TARGET = "torch.distributed.elastic.multiprocessing.api"


class Mender:
    def find_spec(self, name, path=None, target=None):
        if name != TARGET:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_and_mend(module):
            load(module)
            module.Std.from_str = staticmethod(lambda text: parse(module.Std, str(text)))

        spec.loader.exec_module = exec_and_mend
        return spec


def parse(std, text):
    if ":" in text:
        pairs = (item.split(":") for item in text.split(","))
        return {int(rank): std(int(value)) for rank, value in pairs}
    return std(int(text))


if any("torch" in word for word in sys.orig_argv):
    sys.meta_path.insert(0, Mender())
