package knowledge

import "github.com/megatron-ops/megatron-ops/internal/lazy"

// neighbourRules decline what lies next to the field and uses its words:
// running the cluster itself, other programs to write or to run, which product
// or team is better, how well a model learns, jobs that people have.
var neighbourRules = []scopeRule{
	{ // running the cluster
		foreign, lazy.New(`\b(?:add|register|configure|set up|setup|change|edit|modify|tune|write|upgrade|migrate|default value of)\b.{0,48}\b(?:(?:slurm|slurmdbd|gres|cgroup|topology|acct_gather|job_container|plugstack|mpi|nodes)\.conf|slurmdbd|slurmctld)\b|(?:(?:slurm|slurmdbd|gres|cgroup|topology)\.conf|slurmdbd|slurmctld).{0,24}(?:怎么配|如何配|配置方法|怎么写|如何写|怎么改|怎么设|迁移|升级|搭|高可用)|\bjob_submit\b.{0,16}(?:plugin|lua|插件)|\blua\b.{0,16}\bplugin\b|` +
			`\b(?:upgrade|install|replace|update|flash|swap|rack|cable|buy|repair|rma)\w*\b.{0,24}\b(?:drivers?|firmware|bios|kernel|operating system|nics?|hca|ofed|switch(?:es)?|(?:a |the )?(?:failed|broken|dead|bad|faulty) gpus?|motherboard|psu|disks?)\b|(?:升级|安装|更换|更新|刷|装).{0,12}(?:驱动|固件|bios|内核|操作系统|网卡|交换机|主板|电源|坏卡)|(?:驱动|固件|操作系统|交换机).{0,6}(?:怎么装|怎么升级|怎么更新|如何安装|如何升级|怎么配)|` +
			`\b(?:apply for|request|create|open|get)\b.{0,12}\b(?:an? |new )?(?:user )?account\b.{0,20}\b(?:cluster|system|hpc)\b|(?:账号|帐号|账户|帐户).{0,6}(?:怎么|如何|在哪)?(?:申请|开通|注册)|(?:申请|开通|注册).{0,6}(?:账号|帐号|账户)|\b(?:set|change|raise|configure)\b.{0,24}\bquota (?:for|of) (?:a |the |another |each |every |all )?(?:users?|groups?|projects?)|\bmount(?:ing)? (?:a |the )?(?:lustre|nfs|gpfs|weka|beegfs|ceph)\b.{0,24}\b(?:on|to|at) (?:the |all |every |each )?nodes?`),
		lazy.New(`error|fail|报错|失败|reason|原因|container|容器|镜像|image|docker|enroot|pyxis|nccl|too old|insufficient|mismatch|不匹配|版本太`),
	},
	{ // other programs to write
		foreign, lazy.New(`\b(?:write|implement|code|create|program|develop|build)\b.{0,16}\b(?:an? |me |my |some |the )?(?:simple |small |custom |own |new )?(?:c\+\+|c#|java|rust|golang|cuda kernel|triton kernel|gpu kernel|javascript|sql|html|android|ios|mobile|web|desktop|lisp|haskell)\b|\bunit tests? in (?:go|java|rust|c\+\+|javascript|swift)\b|\bcuda kernels?\b.{0,12}\b(?:for|from scratch|tutorial)\b|(?:写|实现|开发|编写)(?:一个|个|一段|一下)?.{0,8}(?:cuda ?kernel|cuda ?核函数|核函数|算子|网页|网站|app|小程序|爬虫|游戏|计算器|编译器|操作系统)`),
		lazy.New(`megatron|sbatch|slurm|training script|训练脚本`),
	},
	{ // which is better, and what one thinks of it
		foreign, lazy.New(`\bwhich (?:team |company |vendor |framework |library |language |model |university |country |paper )(?:is|are|was|were) (?:\w+ )?(?:better|stronger|smarter|cooler|nicer|more popular|the best)\b|\bis \S+(?: \S+){0,2} (?:better|worse|faster|smarter|stronger|cooler) than\b.{0,32}\b(?:qwen|llama|gpt|claude|gemini|mistral|deepseek|deepspeed|amd|mi\d{3}x?|intel|tpu|google|meta|openai)\b|\bdo you (?:think|prefer|recommend|believe)\b.{0,40}\b(?:better|best|future|career|company|team)\b|哪个(?:团队|公司|厂商|国家|大学|模型|框架|语言|厉害).{0,12}(?:厉害|更强|更好|最好|最强|牛|好)|(?:团队|公司|厂商|模型|框架).{0,6}(?:谁|哪个|哪家)(?:更)?(?:厉害|强|好|牛)|你(?:觉得|认为|怎么看|更喜欢|支持).{0,24}(?:厉害|强|好|喜欢|前景|未来|公司|团队)|如何(?:评价|看待)|怎么(?:评价|看待)|\bworth (?:it|joining|buying)\b`),
		lazy.New(`\bflag|\boption|srun or|sbatch or|rdzv|参数|还是用|哪个命令|哪个参数|变量|写法`),
	},
	{ // how a model learns
		predict, lazy.New(`\b(?:predict|forecast|guess|extrapolate)\b.{0,24}\b(?:loss|accuracy|perplexity|score|throughput|speed|mfu)\b|(?:预测|猜|估计一?下?).{0,8}(?:loss|精度|困惑度|收敛)|\bloss\b.{0,32}(?:stuck|plateau\w*|not (?:decreas|going down|dropp|improv)\w*|flat|too high|won't (?:go down|decrease|drop))|loss.{0,16}(?:不降|不下降|降不下去|降不下来|不收敛|太高|卡在|停在)|(?:best|optimal|ideal|right|good) (?:learning rate|lr|weight decay|dropout|warm-?up)\b.{0,32}\b(?:for|with|to)\b|(?:学习率|权重衰减|dropout|预热步数).{0,8}(?:多少|多大|几).{0,6}(?:最好|合适|最优|最佳|比较好|好)|(?:how (?:good|smart|accurate)|what (?:accuracy|perplexity|benchmark|mmlu|score))\b.{0,32}\b(?:model|after|will|would)\b|\b(?:improve|increase|boost)\b.{0,16}\b(?:accuracy|perplexity|benchmark|mmlu|model quality)\b|(?:模型).{0,8}(?:效果|质量|精度|能力|水平).{0,8}(?:怎么样|如何|怎么提高|怎么提升|怎么评测|怎么评估|好不好)|(?:评测|评估|测评).{0,8}模型|\bhow many (?:tokens|epochs) (?:do i|do we|should|are) .{0,16}(?:need|train|enough)|scaling laws?|chinchilla`),
		lazy.New(`nan\b|\binf\b|flag|参数|log|日志|spike|golden|resume|checkpoint|after (?:restart|resum)|恢复|续训|重启|tensor|ranks? differ|hang|卡死|wandb|tensorboard`),
	},
	{ // jobs that people have, and other people's numbers
		foreign, lazy.New(`\b(?:leaf|root|tree|graph|linked[- ]list|dom|xml|json|html) nodes?\b|\bnodes? (?:of|in|from) (?:a |the |an )?(?:binary |search |decision |undirected |directed )?(?:tree|graph|linked[- ]list|dom)\b|\b(?:node|graph) theory\b|二叉树|链表|图论|叶子?节点|决策树|\b(?:need|want|find|get|land|apply for) (?:me )?(?:a |an |the |another )?(?:new )?job (?:as|in|at)\b|\bhistory of (?:nvidia|slurm|computing|ai|gpus?|deep learning|supercomput\w*)|\b(?:label|annotate)\w* (?:images?|data|datasets?|pictures|videos?)\b|\b(?:good|nice|cool|funny) name for\b|(?:起|取)(?:个|一个)?(?:什么)?(?:好听的?)?名字|\bjob (?:description|interview|offer|market|application|advert|posting|title|fair|seekers?|satisfaction)\b|\b(?:find|get|apply for|look(?:ing)? for|quit|lose|lost) (?:a |an |my |the )?(?:[\w -]{0,24} )?job (?:in|at|as|offer|market)\b|\b(?:engineer|developer|scientist|analyst|manager) (?:job|role|position)s?\b|\ba job at \w+|\bhow many gpus (?:does|did|do|has|have|is|are|were|was) (?:openai|google|meta|microsoft|nvidia|anthropic|xai|tesla|amazon|they|deepseek|gpt|llama|claude|gemini|grok)|(?:训练|训) ?(?:gpt|llama|claude|gemini|deepseek|grok|qwen)[\w.-]*.{0,8}(?:用了|花了|要).{0,4}(?:多少|几)|\bpower (?:draw|consum\w*|usage|budget|does)|\bhow much (?:power|energy|heat|electricity|noise|carbon|co2)\b|\bcarbon footprint\b|\b(?:rack|cooling|power) (?:layout|requirements?|budget|density)\b|\bwho (?:won|designed|invented|discovered|coined)\b|\bplot of\b|(?:食堂|宿舍|班车|停车|门禁|工牌|会议室|年会|团建)`),
		lazy.New(`slurm job|sbatch|srun|squeue|--power|nvidia-smi|nvlink|nvl\d+.{0,20}(?:topolog|block|segment|tp\b)`),
	},
}
