package job

import (
	"slices"
	"strings"
)

// nodeCheckProgram is the Python program of every rank of the node check. Each rank
// allocates most of its GPU's memory and computes a sum in it; then all ranks run
// collectives over NCCL. Each good node prints one "ok" line and each bad GPU prints
// one "bad" line. The diagnosis parses both lines. The program goes into single
// quotes, so it must not contain any.
const nodeCheckProgram = `import datetime, os, socket, sys, time
import torch, torch.distributed as dist
host = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
local = int(os.environ["LOCAL_RANK"])
def say(status, more):
    print(f"node-check: host={host} gpu={local} status={status} {more}", flush=True)
def bad(step, error):
    say("bad", f"step={step} error={type(error).__name__}: " + " ".join(str(error).split())[:200])
    sys.exit(1)
try:
    torch.cuda.set_device(local)
    free, total = torch.cuda.mem_get_info()
    block = torch.ones(int(free * 0.9) // 4, device="cuda")
    block.sum().item()
    del block
    torch.cuda.empty_cache()
except Exception as error:
    bad("memory", error)
try:
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=120))
    x = torch.ones(1 << 26, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    start = time.time()
    for _ in range(5):
        dist.all_reduce(x)
    dist.barrier()
    torch.cuda.synchronize()
    rate = 5 * x.numel() * 4 / (time.time() - start) / 1e9
except Exception as error:
    bad("nccl", error)
if local == 0:
    say("ok", f"gpus={torch.cuda.device_count()} memory_gib={total / 2**30:.0f} allreduce_gb_per_s={rate:.1f}")
dist.destroy_process_group()
`

// nodeCheck returns the step before the training that ends the job if a node is bad.
func (r *rendering) nodeCheck() string {
	if !*r.NodeCheck || r.Minimal || *r.GPUsPerNode == 0 {
		return ""
	}
	check := *r
	check.Monitor = new(false)
	check.Rdzv = Rdzv{Backend: "static"}
	if check.Launcher != UV {
		check.Launcher = Python
	}
	options := slices.DeleteFunc(r.srunOptions(), func(o string) bool {
		// The step of the training is found by its name, so the check must not have it.
		return strings.HasPrefix(o, "--output=") || strings.HasPrefix(o, "--error=") || strings.HasPrefix(o, "--job-name=")
	})
	words := append([]string{"srun " + strings.Join(options, " ")}, r.containerOptions()...)
	words = append(words, r.containerWords()...)
	return `# Node check: every GPU gives most of its memory and answers over NCCL, before any training.
NODE_CHECK='
` + nodeCheckProgram + `'
` + strings.Join(words, " \\\n  ") + ` \
  bash -c '
    exec ` + strings.Join(append(check.launcher(), `--no-python python -c "$1"`), " \\\n      ") + `
  ' _ "$NODE_CHECK" || { echo "node check: stop: a node is bad; give the nodes of the lines above as exclude" >&2; exit 3; }`
}
