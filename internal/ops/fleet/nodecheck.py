# Runs once on each node. Every line that it prints is one thing that it looked
# at, as JSON; the judging is done where all nodes' lines come together.
import json, os, re, shutil, socket, subprocess, sys, threading, time

node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
nodes, rank, gpus_asked = os.environ["CHECK_NODES"].split(","), int(os.environ["SLURM_PROCID"]), int(os.environ["CHECK_GPUS"])
master, port = nodes[0], 15000 + int(os.environ["SLURM_JOB_ID"]) % 9000
LONG = 60  # seconds that a peer may take


def say(check, ok=True, **more):
    sys.stdout.write("nodecheck " + json.dumps({"node": node, "check": check, "ok": ok, **more}) + "\n")
    sys.stdout.flush()


def skip(check, why, more=None):
    say(check, skipped=why, error=more)


def short(error):
    return (type(error).__name__ + ": " + " ".join(str(error).split()))[:300]


def words(*argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
        return done.stdout if done.returncode == 0 else None
    except (OSError, subprocess.SubprocessError):
        return None


def hardware():
    """What driver and kernel say of the GPUs."""
    table = words("nvidia-smi", "--query-gpu=index,name,ecc.errors.uncorrected.volatile.total,retired_pages.pending", "--format=csv,noheader,nounits")
    if table is None:
        skip("ecc", "no-nvidia-smi" if not shutil.which("nvidia-smi") else "nvidia-smi-fails")
        if gpus_asked and shutil.which("nvidia-smi"):
            say("driver", False, error="nvidia-smi fails")
    else:
        for line in table.splitlines():
            cell = [c.strip() for c in line.split(",")]
            if len(cell) >= 4:
                bad = cell[2].isdigit() and int(cell[2]) > 0 or cell[3] == "Yes"
                say("ecc", not bad, gpu=int(cell[0]), error=f"{cell[2]} uncorrected ECC errors, retirement pending: {cell[3]}" if bad else None)
    log = words("dmesg")
    if log is None:
        skip("xid", "kernel-log")
    else:
        xids = [l.strip() for l in log.splitlines() if re.search(r"NVRM: Xid", l)]
        say("xid", not xids, error=" / ".join(xids[-3:])[:600] if xids else None)
    free = shutil.disk_usage("/dev/shm").free / 2**30 if os.path.isdir("/dev/shm") else 0
    say("shm", free >= 1, value=round(free, 1), unit="GiB free", error=None if free >= 1 else f"/dev/shm has {free:.1f} GiB free")


def one_gpu(torch, i):
    try:
        torch.cuda.set_device(i)
        free, total = torch.cuda.mem_get_info()
        block = torch.ones(int(free * 0.9) // 4, device="cuda")
        good = int(block[:: 1 << 20].sum().item()) == len(block[:: 1 << 20])
        del block
        torch.cuda.empty_cache()
        say("memory", good and free > total * 0.8, gpu=i, value=round(free / 2**30, 1), unit="GiB",
            error=None if good and free > total * 0.8 else f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB are free" if good else "what was written was not read back")
        a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
        for _ in range(5):
            a @ a
        torch.cuda.synchronize()
        start = time.time()
        for _ in range(30):
            b = a @ a
        torch.cuda.synchronize()
        rate = 30 * 2 * 4096**3 / (time.time() - start) / 1e12
        say("compute", bool(torch.isfinite(b).all()), gpu=i, value=round(rate, 1), unit="TFLOP/s")
    except Exception as error:
        say("memory", False, gpu=i, error=short(error))


def peers():
    """Every node calls every other one by its name."""
    server = socket.create_server(("", 0), family=socket.AF_INET)
    server.settimeout(LONG)

    def answer():
        while True:
            try:
                server.accept()[0].close()
            except OSError:
                return

    threading.Thread(target=answer, daemon=True).start()
    mine = server.getsockname()[1]
    everybody = meet({"node": node, "port": mine})
    if everybody is None:
        return False
    missing = []
    for other in everybody:
        if other["node"] == node:
            continue
        try:
            socket.create_connection((other["node"], other["port"]), timeout=10).close()
        except OSError as error:
            missing.append(other["node"] + " (" + short(error) + ")")
    absent = [n for n in nodes if n not in [o["node"] for o in everybody]]
    say("connect", not missing, value=len(everybody) - 1 - len(missing), unit="peers", absent=absent,
        unreached=[m.split(" ")[0] for m in missing], error="cannot reach " + ", ".join(missing)[:400] if missing else None)
    together = meet({"node": node, "done": True})  # nobody hangs up before all have called
    return not absent and together is not None and len(together) == len(nodes)


rounds = 0


def meet(mine):
    """All tell the first node, which tells all; None where that fails."""
    global rounds
    rounds += 1
    at = port + rounds
    try:
        if rank == 0:
            server = socket.create_server(("", at), family=socket.AF_INET)
            server.settimeout(1)
            calls, said, until = [], [mine], time.time() + LONG
            while len(said) < len(nodes) and time.time() < until:
                try:
                    c = server.accept()[0]
                except TimeoutError:
                    continue
                c.settimeout(10)
                said.append(json.loads(c.makefile().readline()))
                calls.append(c)
            for c in calls:
                c.sendall((json.dumps(said) + "\n").encode())
            return said
        until = time.time() + LONG
        while True:
            try:
                c = socket.create_connection((master, at), timeout=5)
                break
            except OSError:
                if time.time() > until:
                    raise
                time.sleep(0.3)
        c.settimeout(LONG + 20)
        c.sendall((json.dumps(mine) + "\n").encode())
        return json.loads(c.makefile().readline())
    except (OSError, ValueError) as error:
        say("connect", False, unreached=[master], error=f"cannot reach {master}: {short(error)}")
        return None


def group(torch, kind):
    """A barrier of all, then all-reduce with one neighbour and with the other."""
    import datetime
    import torch.distributed as dist
    where = "cuda" if kind == "nccl" else "cpu"
    size = (1 << 26) if kind == "nccl" else (1 << 21)
    try:
        if kind == "nccl":
            torch.cuda.set_device(0)
        dist.init_process_group(kind, init_method=f"tcp://{master}:{port}", rank=rank, world_size=len(nodes), timeout=datetime.timedelta(seconds=2 * LONG))
        start = time.time()
        x = torch.ones(1, device=where)
        dist.all_reduce(x)
        dist.barrier()
        right = int(x.item()) == len(nodes)
        say("barrier", right, backend=kind, error=None if right else f"the sum over {len(nodes)} nodes is {x.item()}")
        for first in (0, 1):
            pairs = [(i, (i + 1) % len(nodes)) for i in range(first, len(nodes), 2) if len(nodes) > 2 or i == 0]
            pairs = [p for p in pairs if p[0] != p[1] and not (first == 0 and p[1] == 0 and len(nodes) > 2)]
            for pair in pairs:
                g = dist.new_group(list(pair))  # made by all, in the same order
                if rank not in pair:
                    continue
                block = torch.ones(size, device=where)
                for timed in (False, True):
                    start = time.time()
                    for _ in range(5):
                        dist.all_reduce(block, group=g)
                        block.fill_(1)
                    if where == "cuda":
                        torch.cuda.synchronize()
                if rank == pair[0]:
                    say("allreduce", True, backend=kind, pair=[nodes[p] for p in pair], value=round(5 * size * 4 / (time.time() - start) / 1e9, 2), unit="GB/s")
            dist.barrier()
        dist.destroy_process_group()
    except Exception as error:
        say("barrier", False, backend=kind, error=short(error))


def inside(local, count, path):
    """One process a GPU: the bandwidth between the GPUs of the node."""
    import datetime
    import torch
    import torch.distributed as dist
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", init_method="file://" + path, rank=local, world_size=count, timeout=datetime.timedelta(seconds=LONG))
    x = torch.ones(1 << 26, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    start = time.time()
    for _ in range(5):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    if local == 0:
        say("inside", True, value=round(5 * x.numel() * 4 / (time.time() - start) / 1e9, 1), unit="GB/s")
    dist.destroy_process_group()


def main():
    hardware()
    try:
        import torch
    except Exception as error:
        torch = None
        for check in ("cuda", "memory", "compute", "barrier", "allreduce"):
            skip(check, "no-torch", sys.executable + ": " + short(error))
    count = torch.cuda.device_count() if torch and torch.cuda.is_available() else 0
    if torch and gpus_asked:
        say("cuda", count == gpus_asked, value=count, unit="GPUs", given=gpus_asked)
    elif torch:
        for check in ("cuda", "memory", "compute"):
            skip(check, "no-gpu")
    for i in range(count):
        one_gpu(torch, i)
    if count > 1:
        import torch.multiprocessing as many
        try:
            many.spawn(inside, (count, os.path.abspath("inside")), nprocs=count)
        except Exception as error:
            say("inside", False, error=short(error))
    if len(nodes) < 2:
        for check in ("connect", "barrier", "allreduce"):
            skip(check, "alone")
    elif peers():
        # All must choose alike, or they would wait for one another for ever.
        alike = meet({"node": node, "gpus": count, "torch": torch is not None})
        if alike is None or len(alike) < len(nodes) or not all(a.get("torch") for a in alike):
            skip("allreduce", "not-all")
        else:
            group(torch, "nccl" if all(a.get("gpus") for a in alike) else "gloo")
    say("end")


if __name__ == "__main__":
    main()
