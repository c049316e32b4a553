package knowledge

import "github.com/megatron-ops/megatron-ops/internal/lazy"

// subjectRules decline by what a question is about: another framework or
// platform, a language or tool for its own sake, prices, people, times to come,
// what happened on somebody's cluster, an order with a job's number. They are
// tried behind scopeRules.
var subjectRules = []scopeRule{
	{
		foreign, lazy.New(`\b(?:deepspeed|zero[- ]?(?:infinity|offload)|zero[- ]?(?:stage ?)?[123] .{0,24}(?:deepspeed|config|json)|colossal\w*|nemo(?: \d[\d.]*)? (?:recipes?|config\w*|launcher|framework|toolkit|yaml|curator|guardrails)|nemo 2|torchtitan|torchtune|axolotl|openrlhf|verl|ms-swift|lightning (?:ddp|fsdp|trainer|strategy|module|callback)|triton inference server|accelerate (?:multi|launch).{0,20}yaml|unsloth|trl|llama-?factory|fairscale|fairseq|mosaicml|pjit|xla|torch[-_]xla|tpus?|trainium|inferentia|gaudi|rocm|mi\d{3}x?|oneapi|sagemaker|vertex ai|bedrock|databricks|snowflake|azure|gcp|ec2|(?:create|make|set up|new|delete|list|public) (?:an? |the |my )?s3|s3 (?:bucket polic|cli|console|pric)\w*|gcs|goofys|k3s|minikube|rancher|ingress|istio|kubespray|pytorchjob|mpijob|jobset|kueue|yunikorn|accelerate config|hf trainer|peft|lora|qlora|rlhf library|bigdl|oneflow|triton server|openvino|onnx\w*|coreml|tflite|opencv|yolo\w*|langgraph|llamaindex|faiss|milvus|pinecone|chroma|supabase|firebase|heroku|vercel|cloudflare|digitalocean|proxmox|vmware|hyper-v|vagrant|puppet|chef|saltstack|zabbix|splunk|jira|confluence|notion|trello|zoom|teams|q(?:del|alter|hold|rls|rerun)|resnet\S*|cifar\S*|imagenet|mnist|unet|efficientnet)\b|\bnemo\b.{0,24}\b(?:recipe|trainer|yaml)|书生|悟道|百度|阿里云|腾讯云|华为云`),
		lazy.New(`hostfile|slots|like deepspeed|机器列表|equivalent|counterpart|等价|对应|megatron|slurm|sbatch|srun|mbridge|bridge|checkpoint|tokeni[sz]er|\blabel|\bci\b|nccl|\befa\b|ofi|parallelcluster|torch_xla|error|traceback|transformer[- ]engine|import`),
	},
	{
		foreign, lazy.New(`\bpython\b.{0,32}\b(?:lists?|tuples?|dict\w*|sets?|decorators?|generators?|iterators?|lambda|class(?:es)?|strings?|gil|comprehension|dataclass\w*|asyncio|coroutine|inheritance|f-?strings?|recursion|sort\w*|reverse|threads?|tutorial|beginner)\b|\b(?:list|tuple|dict\w*|decorator|generator|iterator|lambda|string|sort|reverse)s?\b.{0,24}\bpython\b|\b(?:lodash|pointer|segfaults? in c|c\+\+ templates?|rust borrow\w*|borrow checker|goroutines?|monads?|closures?|polymorphism|big[- ]o)\b|\bgit\b.{0,40}\b(?:squash|amend|revert|reset|rebase|stash|cherry|merge conflicts?|blame|reflog|author|tags?|worktree|bisect|undo|force[- ]push)\b|\bmerge conflicts?\b.{0,24}\bgit\b|\b(?:squash|amend|undo|revert|rebase)\b.{0,32}\b(?:commits?|git)\b|\b(?:vim|emacs|neovim|nano|vscode|intellij|pycharm)\b|\b(?:awk|sed|perl|grep)\b.{0,16}(?:column|field|replace|line|第|列|行|替换)|one-?liner|\bregex(?:p|es)? (?:to|for|that|matching)\b|git.{0,6}(?:撤销|回滚|回退|变基|打标签|撤回)|\bset ?up (?:a |an )(?:\w+ ){0,2}server\b|\b(?:ubuntu|debian|centos|fedora|arch linux|macos)\b.{0,24}\b(?:install|upgrade|update|hostname|user|kernel|desktop|package)|(?:change|set|rename) (?:the |my )?hostname|\b(?:ffmpeg|imagemagick|wifi|wi-fi|bluetooth|printer|keyboard|systemd unit|iptables|ufw|fstab|lvm|raid \d)\b|(?:装饰器|生成器|迭代器|列表推导|协程|闭包|多态|面向对象|指针|虚函数|智能指针|递归|二叉树|哈希表|操作系统课|计算机网络课|期末|作业题|打印机|蓝牙|路由器|无线网|输入法)`),
		lazy.New(`salloc|\bssh\b|cuda|\bhosts?\b|主机|megatron|slurm|sbatch|srun|\bci\b|nccl|container|docker|nodelist|job|cluster|torch|\bnodes?\b|\branks?\b|checkpoint|merge request|pull request|signed|sign-?off|dco|容器|作业(?:[^题]|$)|节点|集群|流水线`),
	},
	{
		person, lazy.New(`\b(?:per hour on|rental|rents? for|to rent|second-?hand)\b|租(?:一|几|台|用|个|多少|赁)|(?:采购|购买|二手|贵不贵|什么价|价位|价钱|降价|涨价)|\b(?:boss|manager|team lead|supervisor|advisor|professor)(?:'s)? (?:name|is who|email)|\bwho (?:wrote|runs (?:the|our|this)|founded|developed|is in charge|is responsible|is the (?:boss|head of|admin|owner|author|lead|manager))\b|(?:组长|老板|导师|经理|领导|主任|老师|同学|作者|创始人|发明人)(?:叫什么|是谁|是哪位|姓什么)|谁(?:写|维护|发明|开发|创立|批准)(?:的|了)`),
		lazy.New(`\bfiles?\b|process|root|director|文件|进程|目录|\bgpu memory|communicat|bandwidth|recompute|通信|显存|head node`),
	},
	{
		predict, lazy.New(`\bwill\b.{0,60}\b(?:release|announce|launch|be replaced|replace|outperform|win|collapse|go (?:up|down)|become (?:cheaper|obsolete)|disappear|survive)\b.{0,40}(?:year|decade|quarter|month|\b20[2-9]\d\b|soon|future)|\bwill (?:nvidia|amd|intel|openai|google|meta|microsoft|apple|tsmc|schedmd)\b|\bwill (?:my|our|the|this)\b.{0,24}\b(?:loss|accuracy|perplexity|model|training run)\b.{0,40}\b(?:tomorrow|today|tonight|below|above|converge|next week|good|better)\b|\b(?:next|coming) (?:year|decade|generation)\b.{0,40}\b(?:gpus?|nvidia|chip|price)|(?:明年|后年|今年年?底|未来\p{Han}?年|下一代).{0,24}(?:会|发布|上市|多少|什么时候|涨|降)|什么时候(?:发布|上市|开源|出新)|会不会(?:涨|降|取代|被取代|倒闭|火)`), nil,
	},
	{
		live, lazy.New(`催一下|催一催|\bwhy (?:was|were|did|has|is) [\w-]+'s (?:jobs?|runs?|training)\b|\bwhy .{0,16}\bjob \d{4,}\b.{0,40}\b(?:last night|yesterday|this morning)|\b(?:which|who|anyone|anybody|someone|how many|did|what happened|list|show me)\b.{0,60}\b(?:last night|yesterday|this morning|last week|last month|over the weekend|earlier today)\b|\b(?:last night|yesterday|this morning|last week|over the weekend)\b.{0,40}\b(?:which|who|anyone|how many|what happened)\b|(?:昨天|昨晚|昨夜|前天|今早|上周|上个?月|周末).{0,24}(?:谁|几个|几台|多少|哪些|哪几|哪台|第几步|跑到|有没有人|结果如何|成功了吗|失败了吗)|(?:跑到|训练到|进行到)(?:第几步|哪一?步|哪里?了|多少步)|\bhow (?:hot|warm|loud)\b|(?:temperature|power draw|fan speed) of (?:gpu|node|card|the)|(?:what|which) (?:step|iteration|epoch) (?:is|are) (?:my|our|job|the)|(?:温度|功耗|转速)(?:是)?(?:多少|几度|现在)`),
		lazy.New(`记得|记住|会从|how (?:do|can|could|to)|怎么|如何|命令|command|error|报错|timeout|worked|能跑|sacct|log|日志|(?:machines|nodes) did|跑在|run on`),
	},
	{
		act, lazy.New(`^(?:(?:please|pls|kindly|hey|ok|now|can you|could you|would you|just|go ahead and),? )*(?:extend|increase|raise|lower|change|bump|prioriti[sz]e|resubmit|re-?run|relaunch|requeue|promote|move|resize|shrink|suspend|resume|pause|unpause|hold|release|modify|update|add|give|top|boost|swap|migrate|drain|undrain|set)\b.{0,60}\bjobs? ?(?:id ?)?#?\d{3,}|^(?:please )?(?:resubmit|re-?run|relaunch) #?\d{3,}\b|\b(?:resubmit|re-?run|relaunch|extend|suspend|resume|prioriti[sz]e) (?:my |the |our )?job \d+|^(?:请|麻烦|帮忙|帮我|替我|给我|劳驾)?.{0,2}(?:把|将|给|让).{0,6}\d{3,}.{0,16}(?:调|改|延长|提高|提升|提到|降|加|续|移|置顶|恢复|继续|重新)|(?:帮我|替我|麻烦|劳驾|请).{0,3}(?:把|将|给).{1,20}(?:设成|设为|设置|改成|改为|延长|下线|上线|加到|加上|置为|标成)|(?:延长|提高|恢复|暂停|重提|重新提交)(?:一下)?(?:作业|任务|job) ?\d{3,}(?:吧|$)`),
		lazy.New(`how (?:do|can|could|to)|怎么|如何|怎样|什么命令|哪个命令|哪条命令|\bscontrol|\bsbatch|\?|？|吗|\bglobal-?batch|\bseq`),
	},
	{
		live, lazy.New(`^(?:is|are|was|were|did|has|does) (?:my |the |our )?(?:jobs?|nodes?|gpus?|runs?|login node|head node|cluster|queue|partition|training|filesystem|slurm)\b.{0,24}\b(?:stuck|hung|hanging|dead|down|up|alive|broken|full|busy|idle|free|running|healthy|working|online|offline|done|finished|complete|completed|ready|over|started|crash(?:ed)?|fail(?:ed)?)(?: yet| already| now| today| again| tonight| this (?:morning|afternoon|evening|week|weekend)| at the moment| at present| there)*\s*[?？]?$`),
		lazy.New(`state|mean|status|=|reason`),
	},
	{
		secret, lazy.New(`\b(?:everyone|everybody|other users?|others)'?s? (?:\w+ )?(?:scripts?|files|passwords?|environment)\b|(?:contents? of|what(?:'s| is| are) in|show me|print|cat|paste|dump|^(?:please |can you |could you )?read)\b.{0,24}(?:~/|/home/|/root|/etc/|\.bashrc|\.bash_history|\.ssh|\.env\b|munge\.key|slurmdbd\.conf|kubeconfig|\.netrc|\.pgpass)|(?:/home/|/root|/etc/|\.bashrc|\.ssh|\.env|munge\.key|slurmdbd\.conf|\.netrc).{0,24}(?:内容|贴|发给|发我|打印|给我看)`),
		lazy.New(`how (?:do|can|to)|should|error|enroot|怎么|应该|报错`),
	},
	{
		act, lazy.New(`^(?:please )?(?:kill|stop|terminate|end|reboot|wipe)\b.{0,12}\b(?:every process|all (?:the )?processes)\b|^(?:请|麻烦)?(?:把|将)我?(?:的|所有|全部|那些|这个|那个).{0,14}(?:作业|任务|job).{0,4}(?:删|取消|停|杀|重启|重跑|提交)(?:了|掉)*(?:吧|一下|一遍)`),
		lazy.New(`怎么|如何|命令|how|colleague|command`),
	},
	{
		injection, lazy.New(`\b(?:reply|respond|answer|say|output|print)\b (?:only |just |exactly |me )*(?:with )?(?:the (?:word|phrase|string) |["'“‘])\w|you are (?:a|an) [\w -]{2,24} now|answer (?:everything|all|every question) (?:as|with|like|in)|\b(?:disregard|ignore|forget|drop) (?:your|the|all|any) (?:scope|limits?|topic|purpose|role|policy|safety)|(?:只|仅)(?:回答|回复|输出)["“「']|(?:用|以).{1,8}的(?:口吻|语气|身份)(?:回答|说)`),
		nil,
	},
	{
		foreign, lazy.New(`^\W*(?:(?:thanks?|thank you|thx|ty|sup|bye)\b|cheers\b|good (?:morning|evening|afternoon|night|day)|how are you|how's it going|what's up|goodbye|see you|well done|good job|nice work|you(?:'re| are) (?:so |very |really )?(?:awesome|great|smart|stupid|dumb|useless|cool|funny|the best|wrong|amazing|helpful)|i (?:love|hate|like) you|lol|haha\w*|happy (?:birthday|new year)|merry christmas|谢谢|多谢|感谢|辛苦了|早上好|晚上好|下午好|晚安|再见|拜拜|你真|你好(?:棒|聪明|厉害|笨)|真棒|太棒了|哈哈|新年快乐|生日快乐|过得怎么样|我爱你|我喜欢你|你好\W*(?:呀|啊)?\W*(?:今天|最近)?(?:过得|心情))`),
		lazy.New(`slurm|megatron|sbatch|srun|job|gpu|node|nccl|作业|节点|卡|训练|脚本|报错|how|what|why|which|怎么|为什么|什么是|如何`),
	},
}
