package job

import (
	"regexp"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// In returns what is wrong with the field and what would work, in language l.
func (e *FieldError) In(l lang.Lang) (msg, fix string) { return Say(e.Msg, l), Say(e.Fix, l) }

// Say returns a sentence of this package, such as a warning of a script, in
// language l. A sentence that the table does not know stays English.
func Say(text string, l lang.Lang) string {
	if l != lang.ZH || text == "" {
		return text
	}
	known := catalogue()
	if zh, ok := known.exact[text]; ok {
		return zh
	}
	for _, t := range known.templates {
		m := t.en.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		var b strings.Builder
		for i, part := range strings.Split(t.zh, "%s") {
			if i > 0 {
				b.WriteString(Say(m[i], l))
			}
			b.WriteString(part)
		}
		return b.String()
	}
	return text
}

type template struct {
	en *regexp.Regexp
	zh string
}

// catalogue is the table of sentences, made ready for looking up at the first
// Chinese sentence.
var catalogue = sync.OnceValue(func() (c struct {
	exact     map[string]string
	templates []template
},
) {
	c.exact = map[string]string{}
	for _, s := range sentences {
		if !strings.Contains(s.EN, "%s") {
			c.exact[s.EN] = s.ZH
			continue
		}
		expr := strings.ReplaceAll(regexp.QuoteMeta(s.EN), "%s", "(.*?)")
		c.templates = append(c.templates, template{regexp.MustCompile("(?s)^" + expr + "$"), s.ZH})
	}
	return c
})

// sentences are all that this package says of a specification, in both
// languages. %s stands for a value, or for another sentence; both languages have
// as many, in the same order. A longer template stands before a shorter one.
var sentences = []lang.Text{
	// What is wrong with a value.
	{EN: "is missing", ZH: "缺失"},
	{EN: "is empty", ZH: "为空"},
	{EN: "is given twice", ZH: "重复给出"},
	{EN: "is out of range", ZH: "超出范围"},
	{EN: "is the root directory", ZH: "是根目录"},
	{EN: "is not absolute", ZH: "不是绝对路径"},
	{EN: "is not valid UTF-8", ZH: "不是有效的 UTF-8"},
	{EN: "is not a whole number", ZH: "不是整数"},
	{EN: "is not a job name", ZH: "不是有效的作业名"},
	{EN: "is not a job id", ZH: "不是作业号"},
	{EN: "is not a preset", ZH: "不是已有的 preset"},
	{EN: "is not a variable's name", ZH: "不是有效的变量名"},
	{EN: "is not a field of the job specification", ZH: "不是作业规格的字段"},
	{EN: "is not one of the words it may be", ZH: "不在可选值之列"},
	{EN: "is not one long option of srun", ZH: "不是一个 srun 长选项"},
	{EN: "is not a list of nodes: %s", ZH: "不是节点列表：%s"},
	{EN: "is not a list of nodes", ZH: "不是节点列表"},
	{EN: "is not a list of indices", ZH: "不是数组下标列表"},
	{EN: "is not a dependency that Slurm knows", ZH: "不是 Slurm 认识的依赖"},
	{EN: "is not a time that Slurm knows", ZH: "不是 Slurm 认识的时间"},
	{EN: "is not an image of Megatron-LM's", ZH: "不是 Megatron-LM 的镜像"},
	{EN: "is not an image's name", ZH: "不是镜像名"},
	{EN: "is not the URL of a git remote", ZH: "不是 git 远端的 URL"},
	{EN: "is neither a path nor a name in a registry", ZH: "既不是路径，也不是镜像仓库中的名称"},
	{EN: "is a registry's name, which each node would fetch by itself", ZH: "是镜像仓库中的名称，每个节点都会各自拉取"},
	{EN: "is longer than the system takes as one argument", ZH: "超过系统允许的单个参数长度"},
	{EN: "is longer than the system takes", ZH: "超过系统允许的长度"},
	{EN: "is longer than %s bytes", ZH: "超过 %s 字节"},
	{EN: "is more than 65535 seconds early", ZH: "提前量超过 65535 秒"},
	{EN: "is only for the launcher custom", ZH: "只用于 custom 启动器"},
	{EN: "is set by the script", ZH: "由脚本设置"},
	{EN: "is a name that bash or the script uses for itself", ZH: "是 bash 或脚本自用的名称"},
	{EN: "is nothing", ZH: "没有值"},
	{EN: "is text", ZH: "是文本"},
	{EN: "is a number", ZH: "是数字"},
	{EN: "is a decimal number", ZH: "是小数"},
	{EN: "is true or false", ZH: "是 true 或 false"},
	{EN: "is a list", ZH: "是列表"},
	{EN: "is a map", ZH: "是映射"},
	{EN: "has another form", ZH: "格式不符"},
	{EN: "has a '/', with which Slurm reads names from a file", ZH: "含有 '/'，Slurm 会把它当作文件来读取节点名"},
	{EN: "has a name that starts with '-'", ZH: "含有以 '-' 开头的名称"},
	{EN: "has an index over %s", ZH: "下标超过 %s"},
	{EN: "has a step of 0", ZH: "步长为 0"},
	{EN: "has an event that Slurm does not mail about", ZH: "含有 Slurm 不发邮件的事件"},
	{EN: "has a character that features do not have", ZH: "含有节点特性不会有的字符"},
	{EN: "has brackets that do not match", ZH: "括号不配对"},
	{EN: "has a '*' without a number of nodes of at least 1", ZH: "'*' 之后没有至少为 1 的节点数"},
	{EN: "has a ':' or a ',', which no container's mount can carry", ZH: "含有 ':' 或 ','，容器挂载无法表示"},
	{EN: "has a character of % \\ $ `, which Slurm or a reader would take for more than a name", ZH: "含有 % \\ $ ` 之一，Slurm 或读者会把它当成名称以外的东西"},
	{EN: "has more than host:inside:flags", ZH: "多于 host:inside:flags 三段"},
	{EN: "has a comma, which separates mounts", ZH: "含有逗号，而逗号用于分隔多个挂载"},
	{EN: "has flags that no runtime knows", ZH: "含有任何容器运行时都不认识的标志"},
	{EN: "holds the character %s, which does not show", ZH: "含有不可见字符 %s"},
	{EN: "holds a NUL byte, which no argument can carry", ZH: "含有 NUL 字节，参数无法携带"},
	{EN: "holds a NUL byte, which no variable can carry", ZH: "含有 NUL 字节，环境变量无法携带"},
	{EN: "holds what is no character", ZH: "含有无效字符"},
	{EN: "names no node", ZH: "没有指明任何节点"},
	{EN: "names no signal that Slurm knows", ZH: "不是 Slurm 认识的信号"},
	{EN: "names a day that no month has", ZH: "日期不存在"},
	{EN: "names more than %s combinations", ZH: "展开超过 %s 种组合"},
	{EN: "names %s nodes", ZH: "指明了 %s 个节点"},
	{EN: "starts or ends with an operator", ZH: "以运算符开头或结尾"},
	{EN: "starts with '-'", ZH: "以 '-' 开头"},
	{EN: "starts with '~', which is not expanded", ZH: "以 '~' 开头，而此处不会展开"},
	{EN: "starts containers through Slurm alone", ZH: "只能通过 Slurm 启动容器"},
	{EN: "goes up with '..'", ZH: "用 '..' 指向了上级目录"},
	{EN: "counts down", ZH: "是递减的"},
	{EN: "ends in the middle", ZH: "不完整"},
	{EN: "mixes ',' and '?'", ZH: "混用了 ',' 与 '?'"},
	{EN: "lets no element run: a number of at least 1 follows %", ZH: "不允许任何元素运行：% 之后须为至少 1 的数"},
	{EN: "lies outside the worktree", ZH: "位于工作树之外"},
	{EN: "looks like a secret, and a specification is stored and shown", ZH: "像是密钥，而规格会被保存和显示"},
	{EN: "may not be set: it changes how the shell, the loader or Slurm works", ZH: "不允许设置：它会改变 shell、加载器或 Slurm 的行为"},
	{EN: "sets %s, which a script may not set", ZH: "设置了脚本不允许设置的 %s"},
	{EN: "would change another job", ZH: "会改变另一个作业"},
	{EN: "would hide the whole image", ZH: "会遮住整个镜像"},
	{EN: "does not say which end to wait for (Slurm would take afterany)", ZH: "没有说明等待哪种结束（Slurm 会当作 afterany）"},
	{EN: "does not match the %s nodes named", ZH: "与给出的 %s 个节点名不一致"},
	{EN: "does not go together with %s", ZH: "不能与 %s 同时使用"},

	// What is wrong with the text as a whole.
	{EN: "is not a recipe: it has no spec", ZH: "不是 recipe：没有 spec"},
	{EN: "is not a recipe: its products name no test case", ZH: "不是 recipe：products 没有指明 test_case"},
	{EN: "more than one document", ZH: "含有多个 YAML 文档"},
	{EN: "nested too deep", ZH: "嵌套过深"},
	{EN: "not YAML that can be read", ZH: "不是可读取的 YAML"},
	{EN: "not YAML: line %s: %s", ZH: "不是 YAML：第 %s 行：%s"},
	{EN: "not YAML: %s", ZH: "不是 YAML：%s"},
	{EN: "not JSON: %s", ZH: "不是 JSON：%s"},
	{EN: "not a JSON line: %s", ZH: "不是 JSON 行：%s"},
	{EN: "line %s: %s: YAML's anchors, aliases and tags are not taken", ZH: "第 %s 行：%s：不接受 YAML 的锚点、别名与标签"},
	{EN: "line %s: nested too deep", ZH: "第 %s 行：嵌套过深"},
	{EN: "YAML's %s is not taken", ZH: "不接受 YAML 的 %s"},
	{EN: "%s bytes are more than a specification may have", ZH: "%s 字节超过了规格允许的大小"},

	// What would work.
	{EN: "leave it out", ZH: "请去掉"},
	{EN: "leave it out, or give a value", ZH: "请去掉，或给出值"},
	{EN: "leave it out: export it before submitting, or put it in the secrets file (mode 600)", ZH: "请去掉：在提交前 export，或放入密钥文件（权限 600）"},
	{EN: "leave it out: a step starts now, and once", ZH: "请去掉：步骤会立即启动，且只启动一次"},
	{EN: "keep one", ZH: "只保留一个"},
	{EN: "keep one of them", ZH: "只保留其中一个"},
	{EN: "choose another name", ZH: "请换一个名称"},
	{EN: "put it in a file", ZH: "请放入文件"},
	{EN: "name as many nodes", ZH: "请给出同样数目的节点名"},
	{EN: "one specification in a file", ZH: "一个文件只写一份规格"},
	{EN: "save the file as UTF-8", ZH: "请以 UTF-8 保存文件"},
	{EN: "split the recipe", ZH: "请拆分 recipe"},
	{EN: "check its indentation and quotes", ZH: "请检查缩进与引号"},
	{EN: "set launcher: custom, or leave it out", ZH: "请设置 launcher: custom，或去掉它"},
	{EN: "mend the preset in the configuration", ZH: "请修正配置中的 preset"},
	{EN: "use enroot, which reads the same .sqsh files", ZH: "请用 enroot，它读取同样的 .sqsh 文件"},
	{EN: "use %s", ZH: "请用 %s"},
	{EN: "it is the job's first node", ZH: "它是作业的首个节点"},
	{EN: "it follows from nodes and gpus_per_node", ZH: "它由 nodes 与 gpus_per_node 得出"},
	{EN: "it is read on the node", ZH: "它在节点上读取"},
	{EN: "torch sets it", ZH: "由 torch 设置"},
	{EN: "did you mean %s?", ZH: "是否想写 %s？"},
	{EN: "the fields are %s", ZH: "可用字段：%s"},
	{EN: "one of %s", ZH: "可选：%s"},
	{EN: "at most %s levels", ZH: "最多 %s 层"},
	{EN: "at most %s", ZH: "最多 %s"},
	{EN: "dev or lts", ZH: "dev 或 lts"},
	{EN: "write name: value lines", ZH: "请写成 name: value 形式的行"},
	{EN: "mend it there; lines are name: value", ZH: "请修改该处；每行应为 name: value"},
	{EN: "write a number such as 8", ZH: "请写数字，例如 8"},
	{EN: "write a plain value", ZH: "请写普通的值"},
	{EN: "write a list, one element each", ZH: "请写成列表，每项一个元素"},
	{EN: "write a map of NAME: value", ZH: "请写成 NAME: value 的映射"},
	{EN: "write a map of %s", ZH: "请写成映射，键为 %s"},
	{EN: "write one value, in quotes where needed", ZH: "请写一个值，必要时加引号"},
	{EN: "write the value out, or quote it", ZH: "请直接写出该值，或加引号"},
	{EN: "write true or false", ZH: "请写 true 或 false"},
	{EN: `write {"id": …, "spec": {…}}`, ZH: `请写 {"id": …, "spec": {…}}`},
	{EN: "make a file of it once: enroot import -o FILE.sqsh docker://IMAGE", ZH: "请先转成文件一次：enroot import -o FILE.sqsh docker://IMAGE"},
	{EN: "say which runtime starts the container: pyxis, enroot, singularity, apptainer or docker", ZH: "请说明由哪个运行时启动容器：pyxis、enroot、singularity、apptainer 或 docker"},
	{EN: "give the absolute path of a Megatron-LM checkout that every node sees", ZH: "请给出所有节点可见的 Megatron-LM 代码目录的绝对路径"},
	{EN: "give the absolute path of a docker save file that every node sees", ZH: "请给出所有节点可见的 docker save 文件的绝对路径"},
	{EN: "give an absolute path", ZH: "请给出绝对路径"},
	{EN: "give a path without them", ZH: "请给出不含它们的路径"},
	{EN: "give a path relative to the worktree, such as pretrain_gpt.py", ZH: "请给出相对于工作树的路径，例如 pretrain_gpt.py"},
	{EN: "give a file of tests/test_utils/recipes", ZH: "请给出 tests/test_utils/recipes 中的文件"},
	{EN: "give a number from %s to %s", ZH: "请给出 %s 到 %s 之间的数"},
	{EN: "give a number such as 4711", ZH: "请给出数字，例如 4711"},
	{EN: "give --option or --option=value, one element each", ZH: "请写 --option 或 --option=value，每项一个"},
	{EN: "give the Megatron-LM checkout", ZH: "请给出 Megatron-LM 代码目录"},
	{EN: "give the image that %s starts", ZH: "请给出 %s 要启动的镜像"},
	{EN: "give the image to distribute, and container.runtime", ZH: "请给出要分发的镜像与 container.runtime"},
	{EN: "give the text of docker/.ngc_version.%s", ZH: "请给出 docker/.ngc_version.%s 的内容"},
	{EN: "give the words of the launcher, such as [python, -m, mylauncher]", ZH: "请给出启动器的各个词，例如 [python, -m, mylauncher]"},
	{EN: "give %s", ZH: "请给出%s"},

	// What a grammar takes.
	{EN: "1 to 64 of letters, digits, '.', '_', '+', '-', not starting with '-'", ZH: "1 到 64 个字母、数字、'.'、'_'、'+'、'-'，不以 '-' 开头"},
	{EN: "letters, digits, '.', '_', '-', '@', '+'", ZH: "字母、数字、'.'、'_'、'-'、'@'、'+'"},
	{EN: "letters, digits and '_', not starting with a digit", ZH: "字母、数字与 '_'，不以数字开头"},
	{EN: "names of letters, digits, '.', '_', '-', with commas between", ZH: "由字母、数字、'.'、'_'、'-' 组成的名称，用逗号分隔"},
	{EN: "node names such as gpu[01-04,7], at most 10000 of them", ZH: "节点名，例如 gpu[01-04,7]，最多 10000 个"},
	{EN: "minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS, such as 04:00:00", ZH: "分钟数、MM:SS、HH:MM:SS、D-HH、D-HH:MM 或 D-HH:MM:SS，例如 04:00:00"},
	{EN: "a number with K, M, G or T, such as 1000G, or 0 for all", ZH: "带 K、M、G 或 T 的数，例如 1000G；0 表示全部"},
	{EN: "a signal and the seconds before the end, such as USR1@300 or B:TERM@120", ZH: "信号与距结束的秒数，例如 USR1@300 或 B:TERM@120"},
	{EN: "features joined with & or |, such as h100&ib or [rack1|rack2]", ZH: "用 & 或 | 连接的特性，例如 h100&ib 或 [rack1|rack2]"},
	{EN: "such as afterok:4711, afterany:12:13 or singleton, joined with ',' for all or '?' for any", ZH: "例如 afterok:4711、afterany:12:13 或 singleton；用 ',' 表示全部满足，'?' 表示任一满足"},
	{EN: "such as 1-10%1, 0-15:4 or 1,3,5-7", ZH: "例如 1-10%1、0-15:4 或 1,3,5-7"},
	{EN: "such as 16:00, now+2hours, tomorrow or 2030-01-20T12:34:00", ZH: "例如 16:00、now+2hours、tomorrow 或 2030-01-20T12:34:00"},
	{EN: "such as git@gitlab.example.com:group/project.git", ZH: "例如 git@gitlab.example.com:group/project.git"},
	{EN: "a user or an address such as alice@example.org", ZH: "用户名或邮件地址，例如 alice@example.org"},
	{EN: "of %s", ZH: "，可选：%s"},
	{EN: "one line of text", ZH: "一行文本"},
	{EN: "hourly, daily, weekly or a period such as 30m, 12h, 2d", ZH: "hourly、daily、weekly，或间隔如 30m、12h、2d"},
	{EN: "an option such as join_timeout", ZH: "选项名，例如 join_timeout"},
	{EN: "a plain value, without commas", ZH: "普通的值，不含逗号"},
	{EN: "a path of printable characters, without '..'; nothing in it is expanded", ZH: "由可见字符组成、不含 '..' 的路径；其中不做任何展开"},
	{EN: "an absolute path of printable characters, without '..'; nothing in it is expanded", ZH: "由可见字符组成、不含 '..' 的绝对路径；其中不做任何展开"},
	{EN: "a registry name such as nvcr.io#nvidia/pytorch:25.04-py3, or a .sqsh or .sif file", ZH: "镜像仓库中的名称，例如 nvcr.io#nvidia/pytorch:25.04-py3，或 .sqsh、.sif 文件"},
	{EN: "a folder inside the worktree, such as logs", ZH: "工作树内的目录，例如 logs"},
	{EN: "host:inside or host:inside:flags, both absolute", ZH: "host:inside 或 host:inside:flags，两侧都是绝对路径"},

	// What works and an expert would not do.
	{EN: "docker-privileged gives the container the whole node; most sites forbid it, and training does not need it", ZH: "docker-privileged 让容器获得整个节点的权限；多数站点禁止，训练也不需要"},
	{EN: "signal: torch's launcher ends the ranks itself on SIG%s, after 30 seconds whether they have saved or not; USR1 leaves them the time", ZH: "signal：torch 启动器收到 SIG%s 后会自行结束各 rank，30 秒后无论是否已保存；USR1 则给它们留出时间"},
	{EN: "docker passes a signal on to the container's first process only, so the ranks may not save; scancel still ends the job", ZH: "docker 只把信号传给容器的第一个进程，各 rank 可能不会保存；scancel 仍能结束作业"},
	{EN: "signal: without @seconds Slurm sends it 60 seconds before the end, which is short for a checkpoint", ZH: "signal：没有 @秒数 时 Slurm 在结束前 60 秒发送，保存检查点可能来不及"},
	{EN: "enroot starts a .sqsh file: make it once with enroot import --output FILE.sqsh docker://IMAGE", ZH: "enroot 启动的是 .sqsh 文件：先执行一次 enroot import --output FILE.sqsh docker://IMAGE"},
	{EN: "venv: %s lies on a shared file system that is not mounted into the container: add a mount, or name the image's own, such as /opt/venv", ZH: "venv：%s 位于没有挂载进容器的共享文件系统上：请添加挂载，或使用镜像自带的环境，例如 /opt/venv"},
	{EN: "joined-log gets nothing where per-node-logs takes the output", ZH: "per-node-logs 占用了输出，joined-log 得不到内容"},
	{EN: "cpus_per_task is not given: on many clusters the ranks of a node then share one CPU", ZH: "没有给出 cpus_per_task：在许多集群上，同一节点的各 rank 会共用一个 CPU"},
	{EN: "nothing makes the job save before its time limit: set signal: USR1@300, or give --exit-duration-in-mins", ZH: "作业到达时间上限前不会保存：请设置 signal: USR1@300，或给出 --exit-duration-in-mins"},
	{EN: "worktree: %s is local to each node on most clusters", ZH: "worktree：在多数集群上 %s 是各节点本地的目录"},
}
