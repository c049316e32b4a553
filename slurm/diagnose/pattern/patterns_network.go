package pattern

import "github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"

// networkPatterns match messages of NCCL, gloo, c10d and torchelastic about the network between ranks.
// Sources: NCCL's transport/net_ib.cc, misc/ibvwrap.cc, misc/socket.cc and bootstrap.cc; PyTorch's
// torch/csrc/distributed/c10d and torch/distributed.
var networkPatterns = []pattern{
	{outcome.NCCLIB, fabric + 5, oneOf("network ib not found|got completion|ibv_|vendor err|net/ib|ibv_wc|async event|mlx5_|ucx  error|ucx error|ibverbs" +
		"| roce|infiniband| ib_"), `got completion (from peer|with|from).*(status|error)|call to ibv_\w+ failed|ibv_\w+(\(\))? (failed|returned|error)` +
		`|ibv_wc_\w+_err|net/ib ?:.*(port (error|err|down)|fatal|catastrophic|qp .*error|completion with error|unable to|failed|no valid gid` +
		`|invalid gid|error)|async (fatal )?event ?:? ?(fatal|port error|device fatal|qp fatal|qp access|local catastrophic|cq error)|(mlx5_\w+` +
		`|infiniband|\bib_\w+|\broce\b).*(link.*down|port.*(down|error|inactive)|catastrophic|internal error|health|timed? ?out|syndrome)` +
		`|ucx +error .*(mlx\d|\bib|verbs|rdma|roce|\b[rdu][cd]_|transport|completion)|vendor err \d+|transport retry count(er)? exceeded|no active (ib` +
		`|infiniband|roce)|network ib not found`},
	// NCCL's plugins for other fabrics, such as aws-ofi-nccl (EFA, Slingshot) and UCX.
	{outcome.NCCLIB, fabric + 5, oneOf("net/ofi|net/ucx|net/libfabric"), `nccl warn net/\w+ .*(completed with error|unreachable|failed|unable to|error ?:)`},
	{outcome.NCCLIB, Specific + 3, oneOf("ibv_"), `ibv_\w+ failed.*cannot allocate memory`},

	{outcome.NCCLConnection, fabric + 2, oneOf("failed to initialize any net plugin|no socket interface found|no interface found"), ``},
	{outcome.NCCLConnection, fabric + 1, oneOf("no route to host|connection refused|connection timed out|network is unreachable" +
		"|software caused connection abort|cannot assign requested address|host is down"), `(nccl|socket|bootstrap).*(connect|accept|bind` +
		`|listen)\w* ?(to|from|on)? ?[^ ]* ?.{0,40}(returned|failed|:|with).{0,40}(no route to host|connection refused|connection timed out` +
		`|network is unreachable|software caused connection abort|cannot assign requested address|host is down|timed out|operation not permitted)`},
	{outcome.NCCLConnection, fabric + 1, oneOf("socketpollconnect to|accept failed|sockettryaccept|message truncated|closing connection|uds: " +
		"|could not receive type"), `(connect to \S+ failed|accept failed|exceeded error retry|truncated|uds: .*(failed|error)|socketaccept)`},
	{outcome.NCCLConnection, Aborted - 1, oneOf("nccl warn"), ``},
	{outcome.NCCLConnection, fabric, oneOf("exceeded retries|exceeded error retry|exceeded timeout retry|bad magic|wrong type|message truncated" +
		"|net_ib plugin|could not find real path|bootstrap"), `socket.*exceeded|exceeded (error|timeout|retries|error retry|timeout retry) count` +
		`|bootstrap\w* ?:?.*(failed|error|timeout|timed out|mismatch|bad)|message truncated ?: ?received|nccl warn .*(bad magic|wrong type)`},
	{
		outcome.NCCLConnection, fabric, oneOf("connectfullmesh|unable to find address for|unable to find interface|no such device"),
		`gloo.*connectfullmesh failed|unable to find (address|interface) for|nccl_socket_ifname|gloo.*ifname|gloo_socket_ifname`,
	},
	// Open MPI's daemons (oob_tcp_connection.c).
	{outcome.NCCLConnection, fabric, oneOf("process or daemon was unable to complete a tcp connection"), ``},
	{outcome.NCCLConnection, fabric, oneOf("makedevicefor|ifname"), `(no|unknown|unable|not found|invalid).*ifname|makedeviceforinterface|makedeviceforhostname`},
	{
		outcome.NCCLConnection, TimedOut - 3, oneOf("ncclsystemerror|unhandled system error|ncclinternalerror|ncclunhandledcudaerror|unhandled cuda error" +
			"|unhandled nccl error|nccl error in|nccl error: |nccl warn"),
		`ncclsystemerror|unhandled system error|ncclinternalerror|nccl error in.*(internal error|invalid usage)|nccl error: (unhandled|internal error|invalid usage)|nccl warn .*(socket|network|connect)`,
	},
	// A call of NCCL failed in this process. NCCL has other words for a failure of a peer
	// (ncclGetErrorString in NCCL's src/init.cc).
	{outcome.UserException, Generic, oneOf("unhandled cuda error|invalid argument"), `\w+error: nccl error(?: in)?: .*(unhandled cuda error|invalid argument)\b`},

	{outcome.NodeCountMismatch, Specific, oneOf("clients joined"), `\d+/\d+ clients joined`},
	// gloo refuses a rank that is not below the world size (gloo/context.cc).
	{outcome.NodeCountMismatch, Specific, oneOf("rank < size"), `enforce fail at \S*gloo/context\.cc:\d+\] rank < size`},
	{
		outcome.NodeCountMismatch, Specific, oneOf("invalid rank requested|duplicate gpu detected|same gpu|invalid rank|invalid local rank"),
		`duplicate gpu|rank \d+ and (rank )?\d+ (are |both )?.*(same|on) (gpu|cuda)|invalid rank requested|invalid rank \d+|invalid rank argument`,
	},
	{
		outcome.NodeCountMismatch, Specific, oneOf("world size|world_size|worldsize|nnodes|node_rank|node rank|number of nodes|ranks"),
		`\brank (= ?)?\d+.{0,40}(must be|should be|is|>=|greater|exceeds|out of range|not (in|less)).{0,40}world.?size` +
			`|rank \d+ .{0,30}world.?size:? \d+.*(invalid|mismatch|error)|world.?size.{0,20}(mismatch|does not match|doesn't match|inconsistent|not match)` +
			`|(expected|expects?) (a )?world.?size|node.?rank.{0,40}(must be|should be|>=|out of range|less than|greater)|nnodes.{0,40}(mismatch` +
			`|does not match|expected)|number of nodes.{0,40}(mismatch|does not match|differ)|worker_count=\d+.*world_size|world_size=\d+, worker_count=\d+` +
			`|nranks.{0,20}mismatch|mismatch.{0,20}nranks|all ranks.*same rank|duplicate rank`,
	},
	{outcome.NodeCountMismatch, Specific, oneOf("more than max_nodes|exceeds the maximum number of nodes|rank already|duplicate rank|already registered" +
		"|already checked in"), `rank \d+.*(already|duplicate)|duplicate rank`},
	{
		outcome.NodeCountMismatch, Specific, oneOf("rank count|expected "),
		`mismatch in rank count|expected \d+ (nodes|ranks|processes|tasks|workers)\b.{0,30}\b(got|found|have|has|only|saw|see)\b.{0,8}\d`,
	},

	{outcome.PortInUse, Specific, oneOf("eaddrinuse|address already in use|errno: 98|errno 98|but another process is utilizing it"), ``},
	{outcome.PortInUse, Specific, oneOf("port"), `port \d+ (is )?(already )?(in use|taken|occupied)|failed to listen on any local network address` +
		`|failed to bind to .*port`},

	// c10d tried all addresses in vain (torch/csrc/distributed/c10d/socket.cpp). The exception after
	// this line says why.
	{outcome.PortInUse, fabric, oneOf("failed to listen on any local network address"), `\[c10d\] the server socket has failed to listen`},

	{outcome.Rendezvous, fabric + 3, oneOf("rendezvoustimeouterror|client socket has timed out|client socket has failed to connect|name or service not known" +
		"|temporary failure in name resolution|gaierror|nodename nor servname|no address associated with hostname|failed to resolve" +
		"|could not resolve host|cannot resolve|name resolution|unknown host |unknown host:|hostname cannot be retrieved|socket cannot be retrieved"), ``},
	{outcome.Rendezvous, fabric + 1, oneOf("rendezvousconnectionerror|distnetworkerror|diststoreerror|rendezvouserror|rendezvousclosederror" +
		"|rendezvousstateerror|rendezvousgracefulexiterror|connection to the c10d store"), ``},
	{outcome.Rendezvous, fabric, oneOf("socket timeout|wait timeout|tcpstore|store->get|store based barrier|rendezvous|connect() timed out" +
		"|timed out waiting for clients|timeouterror: the client"), `runtimeerror: (socket timeout|connect\(\) timed out|wait timeout)` +
		`|wait timeout after \d+ ?ms|tcpstore.{0,80}(timed out|timeout|failed|refused|error)|store->get\('?\w*'?\) got error` +
		`|timed out initializing process group in store based barrier|rendezvous.{0,60}(timed out|timeout|failed|error|closed)` +
		`|timed out waiting for clients`},
	// gloo's ranks do not agree on their number (gloo/transport/tcp/address.cc).
	{outcome.Rendezvous, fabric, oneOf("enforce fail at"), `enforce fail at \S*gloo/transport/tcp/address\.cc`},
	{outcome.Rendezvous, fabric + 3, oneOf("environment variable|master_addr|master_port"), `environment variable (rank|world_size|master_addr|master_port` +
		`|local_rank) expected, but not set|master_addr.{0,40}(not set|unset|empty|unbound|expected|resolve)`},
	{outcome.Rendezvous, fabric - 5, oneOf("connection refused|connection reset by peer|no route to host"), `(c10d|tcpstore|store|master|rendezvous|etcd` +
		`|socket\.cpp).{0,120}(connection refused|connection reset by peer|no route to host)|runtimeerror: connection (reset by peer|refused)`},
	{outcome.Rendezvous, fabric - 5, oneOf("etcd"), `etcd.{0,60}(timed? ?out|timeout|refused|failed|exception|unreachable)`},

	{outcome.NCCLTimeout, TimedOut + 5, oneOf("to our best knowledge|joined but didn't finish|mismatched collective detected" +
		"|failed to pass monitoredbarrier|monitoredbarrier|desync"), ``},
	// torch compares the shapes of the ranks' collectives too (ProcessGroupWrapper.cpp).
	{outcome.NCCLTimeout, Specific + 1, oneOf("mismatch between collectives|collectivefingerprint"), ``},
	{outcome.NCCLTimeout, TimedOut + 5, oneOf("got stuck for"), `watchdog got stuck for`},
	// NVIDIA's resiliency extension kills a rank of which its monitor hears nothing (fault_tolerance/rank_monitor_server.py).
	{
		outcome.Hang, TimedOut, oneOf("did not get subsequent heartbeat|did not get initial heartbeat|has been open for|was out of section for"),
		`\[rankmon\w*[^\]]*\] (did not get \w+ heartbeat|section '.*' has been open for|was out of section for)`,
	},
	// The peer of a gloo rank is in another collective (gloo/transport/tcp/pair.cc).
	{outcome.NCCLTimeout, Death + 5, oneOf("op.preamble.length"), `pair\.cc:\d+\] op\.preamble\.length <= op\.nbytes`},
	// "dump signal due to a collective timeout" does not match: torch writes it for every dump.
	{
		outcome.NCCLTimeout, TimedOut, oneOf("caught collective operation timeout|watchdog got stuck|collective timeout|heartbeat monitor timed out" +
			"|collective operation timeout|timed out in call|timeout at nccl work" +
			"|timed out waiting|application timeout caused pair closure|nccl timeout|nccl communicator was aborted on rank|collective timed out|ranks to join"),
		`caught collective operation timeout|watchdog.{0,4} ?got stuck|watchdog got stuck|heartbeat monitor timed out` +
			`|(?:^|[^a] |[^o] a )collective (operation )?time(d )?out|timed out waiting \d+ms for (send|recv)|application timeout caused pair closure` +
			`|nccl.{0,30}timed? ?out|timed out in call|timeout at nccl work`,
	},
}
