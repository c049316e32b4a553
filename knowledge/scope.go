package knowledge

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A scopeRule declines the questions that match re and do not match unless.
type scopeRule struct {
	why        reason
	re, unless *lazy.Pattern
}

// scopeRules are tried in order; the first that matches declines. The text is
// lower case.
var scopeRules = []scopeRule{
	{injection, lazy.New(`(?:developer|hidden|initial|secret) (?:message|instruction)s?\b|(?:ignore|disregard|forget|override|bypass)\b.{0,30}\b(?:instruction|rule|prompt|guideline|restriction|above|previous)|system prompt|developer mode|jailbreak|hidden (?:rule|instruction|prompt)|your (?:prompt|instructions|hidden|internal rules)|you are now\b|pretend (?:to be|you)|from now on you|new (?:system )?(?:instructions?|message|prompt):|\bpwned\b|initial instructions|(?:repeat|print|output|show|reveal) (?:me )?(?:the (?:text|words|content)|everything|all) (?:above|before)|assume the role|\b(?:reply|answer|respond|speak|talk|write) (?:only )?(?:in|like) (?:a )?(?:pirate|rhymes?|riddles?|emojis?|shakespeare\w*|poems?|caps)|\b(?:end|start|begin|finish) (?:each|every|all) (?:answers?|repl(?:y|ies)|sentences?|messages?)\b|\bfrom (?:here|now) on\b.{0,40}\b(?:reply|answer|respond|speak|you)\b|\bwhat were you (?:told|instructed|asked)\b|\bfirst line of your\b|\byour (?:config\w*|secrets?|rules)\b|\bact as (?:root|admin)|\b(?:read|show|print|cat|dump|give|tell)\b.{0,12}\b(?:your|the bot.?s|bot.?s)\b.{0,12}\b(?:config\w*|settings|source|files?)\b|\brun whoami\b|you must (?:now )?obey|without (?:any )?restrictions|do anything now|\bdan mode|as an unrestricted|act as (?:a|an|if|my)\b|` +
		`(?:忽略|无视|忘记|忘掉|绕过|抛开).{0,12}(?:指令|规则|提示|设定|约束)|(?:忽略|无视|忘记|忘掉|绕过|抛开)(?:你|所有|一切|任何|安全|上述|上面|以上|之前|这些|那些).{0,8}(?:要求|限制)|系统提示词?|系统指令|隐藏(?:的)?(?:规则|指令|提示)|你现在是|你现在没有|没有任何限制|扮演|越狱|开发者模式|从现在(?:起|开始)?,?你|初始(?:指令|提示)|提示词|(?:重复|复述|输出).{0,6}(?:上面|以上|前面)的?(?:内容|文字|话)|不要遵守|不受(?:任何)?限制|没有(?:任何)?限制的|以管理员身份|忽略上文|忽略上面|无视限制|(?:管理员|系统|开发者|最高权限)(?:的)?(?:指令|命令)\s?[:：,，]|内部(?:指令|规则|提示)|(?:以上|上面|前面|之前)(?:的)?(?:内容|对话|指令|规则)?(?:全部|都)?作废|听我的|你的(?:配置|设定|指令|规则|提示)`), nil},
	{
		secret, lazy.New(`\b(?:password|passwd|passphrase|api key|private key|ssh key|id_rsa|bot token|slack token|app token|jwt|credit card|login credentials)\b|/etc/(?:passwd|shadow)|\.ssh/|\.aws/|(?:print|show|dump|reveal|leak|cat|echo|give me|tell me|what(?:'s| is)|输出|打印|显示|告诉|给我|发我|读取|看看|泄露).{0,30}(?:\btokens?\b|\bsecrets?\b|\bcredentials?\b|令牌|口令|密钥|凭证)|(?:密钥|令牌|凭证).{0,8}(?:给我|发我|是多少|给一份|来一份)|密码|口令|私钥|\bmunge(?:\.| |'s )?key\b|\b(?:share|send|show|paste|print|give|tell)\b.{0,20}\b(?:hugging ?face|hf|gitlab|github|wandb|slack|ci|bot|munge|api|ssh|jwt)\b.{0,12}\b(?:tokens?|keys?|secrets?)\b|(?:机器人|bot|slack|ci|gitlab|github|hf|hugging ?face|wandb|api|openai)(?: ?里)?的? ?(?:\w+_)?(?:token|令牌|key|密钥).{0,4}(?:值|发|给|是多少|是什么|贴|分享)|(?:看看|列出|查看|列一下|list|show|read|open|cat).{0,6} ?/(?:home|root|etc)/|(?:别人|他人|其他人|人家)的 ?.{0,10}(?:脚本|文件|目录|代码|密码|数据|key).{0,4}(?:给我|看看|发我|拿来|读)|(?:slack|openai|aws|bot|webhook)[\w -]{0,14}(?:token|secret|key|令牌|密钥)|openai_api_key|/proc/|(?:cat|ls|read|open|列出|读取|查看|打开) (?:/root|/etc|/home|~)/?|(?:curl|wget|post|send|upload|发送|上传|发到|传到).{0,40}https?://|(?:print|dump|show|list|output|打印|输出|列出).{0,12}(?:your|all|bot'?s?|server'?s?|你的|所有|全部).{0,8}(?:env\b|environment|环境变量)|(?:env|environment) of the (?:bot|host|server)|机器人的(?:token|令牌|环境)|slack.{0,12}(?:token|令牌)`),
		lazy.New(`docker build|build secret|secret[- ]related|jet|/root/\.cache|enroot|ngc|nvcr|registry|\bprompt|asks? for|\branks?\b|401|gated|tokeni[sz]er|export gitlab_token|seq|vocab|per second|构建|镜像`),
	},
	{
		act, lazy.New(`(?:cancel|kill|delete|remove|scancel|terminate|stop|drain|reboot|shut ?down|wipe|purge|erase|requeue)\b.{0,30}(?:everyone|everybody|all users|all the users|other users|other people|others'|another user|someone else|all jobs (?:on|in|of) the|every job (?:on|in)|all nodes|the (?:whole|entire) cluster)|rm -rf|drop (?:table|database)|` +
			`(?:delete|erase|wipe|remove) (?:all|every|everything|the) ?(?:\w+ )?(?:files?|data|checkpoints?|directories|home|jobs?)\b|(?:取消|删除|删掉|删了|杀掉|停掉|终止|清空|重启|关掉|干掉).{0,10}(?:所有人|别人|其他人|其他用户|全部用户|所有用户|大家|他人|整个集群|所有节点)|(?:把|将).{0,12}(?:所有人|别人|其他人|其他用户|全部用户|所有用户|大家|他人|整个集群|所有节点|所有作业|全部作业|所有文件|检查点).{0,12}(?:取消|删|杀|停|清空|重启|关掉|kill)|(?:删除|删掉|清空).{0,4}(?:所有|全部).{0,8}(?:文件|数据|检查点|目录)|格式化(?:硬盘|磁盘)|^(?:请|帮我|把|给我)?.{0,2}(?:删除|删掉|清空|删光).{0,10}(?:目录|文件|数据|检查点|硬盘)`),
		lazy.New(`how (?:do|can|could|to)|^能(?:不能)?(?:取消|停掉|杀掉|删除).{0,12}[吗么]|without (?:sudo|root)|no (?:sudo|root)|没有? ?(?:sudo|root)|无 ?(?:sudo|root)|办法|\b(?:can|may|should|could) i\b|safe to|cannot|can't|does not|doesn't|by another|scancel -|权限|会|colleague|kill ?switch|\bcommand\b|\ball (?:of )?my\b|每天|定期|定时|怎么|如何|怎样|同事`),
	},
	{
		act, lazy.New(`^(?:please |pls |can you |could you |would you |go ahead and |just |now |hey,? )*(?:cancel|kill|delete|submit|stop|requeue|hold|release|restart|drain|reboot)\b.{0,40}(?:\bfor me\b|\bnow\b|right away|immediately|\bplease\b)|^(?:please |pls |can you |could you |would you |go ahead and )+(?:cancel|kill|delete|submit|stop|requeue|hold|release|restart|drain|reboot|run|execute|start)\b.{0,24}(?:\d{2,}|my job|the job|all|node)|` +
			`(?:帮我|替我|请你?|麻烦|立刻|马上|赶紧|现在就).{0,3}(?:取消|杀掉|删除|删掉|停掉|提交|重启|暂停|释放|执行|运行).{0,12}(?:作业|任务|job|节点|\d{2,}|命令)|(?:帮我|替我|请|麻烦|劳驾).{0,2}(?:把|将).{0,40}(?:scancel|cancel|kill|requeue|hold|取消|杀|删|停|提交|重启|恢复|重跑|释放|暂停|批准)|^(?:帮我|替我|请)?.{0,2}(?:把|将).{1,20}(?:重跑|重提|恢复|批准).{0,4}(?:吧|一下|一遍)|^(?:kick|踢掉|踢走|赶走|踢出).{0,20}(?:user|用户|的人)`),
		lazy.New(`how (?:do|can|could|to)|写个|写一|脚本|例子|示例|模板|怎么|如何|怎样|什么命令|哪个命令|\b(?:but|and) (?:let|make|have|do|don't|not|it|only|start|begin|run)\b.{0,30}(?:start|begin|run|before|after|later|at \d)`),
	},
	{
		act, lazy.New(`\b(?:shut ?down|power (?:off|down)|reboot|restart|cancel|kill|delete|drop|drain|requeue|submit|put|hold|release|suspend|resume|book|order|reserve|send|email|e-mail|schedule|buy)\b.{0,48}\bfor (?:me|us|the team)\b|\bdrop (?:the )?\w+ tables?\b|\b(?:terminate|stop|scancel|cancel|kill|delete|end)\b.{0,16}\bjobs? (?:of|from|by) (?:user )?\w+ (?:right )?now\b|\b(?:terminate|scancel|cancel|kill|delete)\b.{0,16}\bjobs? of (?:user )\w+|\b(?:terminate|scancel|cancel|kill|delete|stop) \w+'s (?:jobs?|runs?)\b|^(?:please |pls |kindly |can you |could you |would you )+(?:wipe|delete|remove|erase|format|purge|empty|clear|clean|install|upgrade|create|add|change|grant|give)\b|\b(?:scancel|cancel|kill|delete)\b.{0,30}(?:belong(?:s|ing) to|owned by)|^(?:can|could|would|will) you (?:book|order|send|email|call|schedule|buy|remind|arrange)\b|` +
			`(?:麻烦|劳驾|拜托|帮忙|请你?|快|赶紧|马上|立刻).{0,2}(?:把|将).{1,24}(?:停掉|停了|停下|取消|删掉|删了|删除|杀掉|杀了|重启|关掉|关机|释放|提交)|^(?:把|将).{1,20}(?:停掉|取消|删掉?|删除|杀掉?|重启|关掉|关机|释放|提交)(?:一下|吧)|^(?:请|麻烦)?(?:把|将) ?[a-z]\w* ?的(?:所有|全部)?(?:作业|任务|job).{0,3}(?:停|取消|杀|删|终止)|^(?:帮我|替我|给我|帮忙)(?:订|买|发|约|点|打|预约|写(?:封|个周报|周报|个?邮件|个?请假|个?总结|个?报告|个?简历|个?作文|首|诗|情书))`),
		lazy.New(`^(?:does|do|is|are|will|did)\b|\b(?:can|may|should|could) i\b|\bgive (?:me|us)\b|without (?:sudo|root)|how (?:do|can|could|to)|怎么|如何|怎样|什么命令|哪个命令|哪条命令|才能`),
	},
	{
		live, lazy.New(`\b(?:current|present|live|real[- ]?time|actual) (?:load|usage|utili[sz]ation|queue|temperature|occupancy|number of|count of)|(?:account|账号|账户|license|certificate|证书).{0,16}(?:expires?|expiry|过期|到期)|how much money|(?:we|i|team|you) (?:spend|spent)\b|花了多少钱|remaining (?:allocation|balance|budget|hours|credits)|allocation (?:left|remaining)|\b(?:what|which) jobs (?:is|are|does|has|have) (?:user )?\w+ (?:running|run\b|queued|submitted|got)|\bwill (?:it|(?:my|the|this|our) (?:job|run|training)) (?:finish|end|start|complete|be done|run).{0,24}(?:before|by|today|tonight|tomorrow|in time|this week|at \d)|(?:[a-z]+-?\d+|节点|机器|集群|分区) ?(?:现在)?(?:空着|闲着|忙着|忙|满了|有人用|被占)(?:吗|没|么|不)|(?:at|in) this (?:very |exact )?(?:moment|second|instant)|as we speak|\d{3,}.{0,14}(?:跑完|结束|完成|开始|好|跑起来)了?没|(?:会不会|什么时候|几号|哪天|when (?:will|is|are)|is there|any).{0,24}(?:停机|停服|维护|maintenance|downtime|outage)|(?:停机|维护|maintenance|downtime|outage).{0,24}(?:什么时候|几号|哪天|when|scheduled|planned|next (?:week|month)|this week|下周|本周|下个?月)`),
		lazy.New(`how (?:do|can|to)|怎么|如何|命令|command|pending|\bpd\b|reqnode|原因|squeue|suffix|后缀|mean|含义|表示|预留|reservation|state|状态`),
	},
	{
		live, lazy.New(`(?:right now|currently|at (?:this|the) moment|at present|this minute|as of now|today|\bnow\b|今天|今早|昨天|昨晚|现在|目前|当前|此刻|实时|眼下|这会儿|刚刚|刚才).{0,60}(?:how many|which|\bwho\b|\blist\b|\bidle\b|\bfree\b|running|busy|queue|\bload\b|alive|down\b|活着|挂了|宕机|几个|几台|多少|哪些|哪台|谁|空闲|空着|在跑|排队|有没有|占用)|(?:how many|which|\bwho\b|\bis\b|\bare\b|\blist\b|几个|几台|多少|哪些|哪台|谁|是否|有没有).{0,60}(?:right now|currently|at (?:this|the) moment|at present|this minute|as of now|\bnow\b|现在|目前|当前|此刻|实时)`),
		lazy.New(`how (?:do|can|could|to)|command|what does|\bmean|stands? for|as soon as|\bsacct\b|\bsalloc\b|窍门|办法|a/i/o/t|\bif\b|although|unknown|refused|no longer|submit now|\d+/\d+/\d+/\d+|怎么|如何|命令|意思|含义|表示|代表|是什么|error|traceback|unless|what now|now\+|\bok\b|allowed|still (?:use|need|valid)|变量|variable|第几个|megatron版本|默认|推荐|supported|必须|应该|需要|hang|卡住|报错|cuda_device|参数|选项|\bflag|\bwhere (?:do|can|to)\b|哪(?:里|儿)?(?:能|可以|去)?(?:看|查)|(?:^|[^现])在哪|去哪|squeue|sinfo|sacct|\bgone\b|missing|disappear|vanish`),
	},
	{
		live, lazy.New(`^(?:is|are|did|has|was|will)\b.{0,24}\b(?:my job|job|node|partition) [\w-]*\d[\w-]*\b.{0,30}(?:idle|up\b|down\b|alive|healthy|done|finish|finished|running|complete|still|ready|free|ok\b|start)|(?:status|state|progress|loss) of (?:my )?job \d+|who is (?:using|running|on|hogging)|(?:作业|任务|job) ?\d{3,}.{0,6}(?:跑完了|结束了|完成了|怎么样了|状态如何|到哪了|还在跑|什么状态)|(?:节点|机器)? ?[a-z]+-?\d+ ?.{0,6}(?:空闲|挂了|活着|在线|正常|有空|宕机|坏了|可用|闲着)(?:吗|没|么|不)|(?:^|[^口程])(?:是)?谁在(?:用|占|跑)|give me the (?:exact )?(?:number|count)|直接(?:告诉|给)我(?:个|一个)?(?:数|结果|答案|列表|名单|状态)|(?:how (?:busy|long|full) is|what(?:'s| is) the (?:length|size) of) the (?:queue|cluster)|queue length|排队的?人多|队列里?(?:有|还有)多少|集群(?:忙|满|空)(?:吗|不)|(?:load|utili[sz]ation) of (?:the|our) cluster`),
		lazy.New(`how (?:do|can|to)|怎么|如何|命令|squeue|sinfo|sacct|\bwhere (?:do|can|to)\b|哪(?:里|儿)?(?:能|可以|去)?(?:看|查)|(?:^|[^现])在哪|去哪`),
	},
	{
		live, lazy.New(`(?:\b(?:my|our|we|account|project)\b|我们?的?|账户|账号|项目).{0,20}(?:卡时|机时|配额|额度|gpu ?小时|\bgpu[- ]?hours?|\bquota).{0,16}(?:还剩|剩余|剩(?:下)?多少|还有多少|\bleft\b|\bremain)`),
		lazy.New(`\d ?(?:k|万)? ?(?:gpu[- ]?(?:hours?|小时)|卡时|机时)|how (?:do|can|to)|command|怎么|如何|命令|查|用完|error|exceeded`),
	},
	{
		live, lazy.New(`(?:\b(?:my|our|remaining|left)\b|我的?|我们的?|剩余|还剩|剩下).{0,24}(?:quota|gpu[- ]?hours?|budget|balance|allocation hours|disk space|storage space|存储空间|磁盘空间|配额|机时|卡时|余额|预算|额度)|(?:quota|gpu[- ]?hours?|budget|balance|disk space|storage|配额|机时|卡时|余额|预算|额度|存储空间|磁盘空间).{0,24}(?:\bleft\b|remain|do i have|do we have|还有多少|还剩|剩多少|是多少|有多大|剩余)`),
		lazy.New(`exceeded|\b(?:eats?|ate|fills?|full)\b|满了?|error|no space left|on device|不足|how (?:do|can|to)|command|save|write|超了|报错|怎么查|命令|\d+ ?(?:gpus|卡|张)`),
	},
	{
		person, lazy.New(`\b(?:phone|telephone|e-?mail address|e-?mail of|home address|birthday|salary|wechat|whatsapp|invoice|slack handle|contact (?:details|info))\b|who (?:made|created|wrote|built|owns) (?:you|this bot|the bot)|\bwhose (?:turn|desk|office|phone|name)\b|\bon[- ]call\b|\bnames? of (?:the |our |your )?(?:[\w']+ ){0,4}(?:head|director|chief|lead|leader|admin\w*|owner|manager|boss|maintainer|person|guy|contact|author|professor)s?\b|\bwhich (?:of (?:my|our|the) )?(?:colleague|teammate|person|admin|people)s?\b.{0,24}\b(?:knows?|best|responsible|in charge|can help|to ask)\b|\bgive me (?:a|his|her|their|the) names?\b|\bwho (?:do|should|can|could) (?:i|we) (?:talk|contact|call|e?-?mail|ping)\b|` +
			`电话|手机号|微信|联系方式|工资|薪水|生日|住址|负责人|值班|办公室|几点(?:上|下)班|的邮箱|邮箱(?:是|多少|给|发)|名字和邮箱|(?:谁|他|她|哪位|申请|审批).{0,12}叫啥名|(?:管理员|同学|老师|领导|老板|组长|经理|运维|同事).{0,6}(?:叫什么|叫啥|是谁|是哪位|哪位|姓)|谁是(?:我们的?)?(?:管理员|老板|经理)|谁(?:能|可以|来)?(?:给|帮)我(?:开|批|加|办)|` +
			`\bhow much (?:does|do|is|are|for|would) .{0,40}\b(?:costs?|gpus?|nodes?|cards?|servers?|hours?|month|year|[abhlv]\d{2,3}s?|gb\d00|dgx|licen[cs]es?|contracts?|support)\b|\bwhat (?:does|do|would) .{0,30}\b(?:hours?|nodes?|gpus?|cards?|servers?|month|year|[abhlv]\d{2,3}s?|gb\d00|dgx)\b.{0,8}\bcosts?\b|\bwhat do we pay\b|\b(?:hourly|daily|monthly) (?:rate|price|cost|fee)s?\b|\blist price|\bprice list|\b(?:[abhlv]\d{2,3}s?|gb\d00|dgx|gpus?) (?:\w+ )?pric(?:e|es|ing)\b|\b(?:admin\w*|owner|boss|manager|lead)(?:'s|s')? (?:name|room|number|e-?mail|phone|contact)s?\b|\bin (?:us )?dollars\b|\busd\b|\bpric(?:e|es|ing) (?:of|for|per) (?:a |an |one |the )?(?:new |used |single )?(?:[abhlv]\d{2,3}s?|gb\d00|dgx|hgx|gpus?|gpu[- ]hours?|nodes?|servers?|cluster|hour|licen[cs]e|month)|\bcosts? per\b|\b(?:buy|rent|purchase|lease|order|renting|buying)\b (?:\w+ ){0,3}(?:[abhlv]\d{2,3}s?|gb\d00|dgx|gpus?|servers?|cards?|\d090)\b|\bwhat budget\b|\bbudget (?:do|does|would|for)\b|多少钱|什么价|采购价|单价|报价|费用|收费|电费|预算|现货|价格`),
		lazy.New(`\[\d|mail-user|mail-type|\bpip |notify|通知|--mail|master|主节点|docker run|发邮件`),
	},
	{
		predict, lazy.New(`(?:what|how (?:much|many|fast|high|long)|exact|guarantee|多少|几|多快|多高|保证).{0,50}(?:\bmfu\b|tokens?(?:/| per )s|tflops?|samples?(?:/| per )s|throughput|\bloss\b|吞吐|训练(?:要|需要)多(?:久|长)).{0,60}(?:will|would|can|do|does|should|expect|get|reach|achiev|能|会|达到|可以|跑)|(?:\bmfu\b|tflops?|吞吐).{0,40}(?:will|would|expect|guarantee|reach|achiev|能到|能达到|会是|是多少|多少|保证)|(?:will|would|can) (?:my|our|the|we|i|it)\b.{0,40}(?:\bmfu\b|tflops|tokens per second)|(?:gpu|h100|a100|h200|b200|h800|card|卡)[- ]?(?:hours?|days?|小时|时).{0,40}(?:need|take|converge|train|pretrain|收敛|训完|需要)|(?:多少|几).{0,4}(?:卡时|gpu ?小时|卡天).{0,20}(?:训|收敛|够)|how long will (?:it|my training|training|the training|pre-?training) .{0,48}take|how long will it take|\b(?:what|how (?:high|good)) (?:will|would) (?:the |my |our )?(?:\w+ )?(?:throughput|mfu|tflops?|step time|loss)\b.{0,12}\bbe\b|\bhow (?:fast|quick(?:ly)?|long|many (?:hours|days|weeks)|much time) (?:will|would) [^?]{0,40}\b(?:steps?|iterations?|epochs?|run|training)\b[^?]{0,30}\b(?:be|need|take|last|with|on)\b|(?:训练?|训完)(?:一个|完)?.{0,14}(?:要|需要?)(?:多少|几) ?(?:个 ?)?(?:卡时|gpu ?(?:小时|时)|卡天|机时)|(?:训练|训完|训).{0,20}(?:要|需要)(?:多久|多长时间|几天)|(?:is|are).{0,30}(?:\d+%|percent) mfu|\b(?:exact|precise|guaranteed?|actual|expected|typical)\b.{0,16}\b(?:mfu|tflops?|tokens?|throughput|step time|ms|seconds|speed)\b.{0,60}(?:\d+ ?[bt]\b|[abh]\d00|gb\d00|cards|gpus)|(?:\d ?[bt]\b|[abh]\d00|gb\d00|\d ?(?:张|卡)).{0,24}(?:每一?步|一步|一个 ?step|每个? ?(?:step|迭代)).{0,8}(?:几|多少|多久|多快)|一(?:天|小时|周|个月|秒).{0,4}(?:能|可以|大概)?.{0,4}(?:训|跑|处理|吞).{0,6}(?:多少|几)|loss.{0,4}(?:会|能|可以)?.{0,2}(?:到|降到|收敛到|是) ?多少`),
		lazy.New(`flag|--\w|log|how (?:do|to)|怎么|如何|参数|日志|low|slow|slurm|上不去|太低|字段`),
	},
	{foreign, lazy.New(`\b(?:pbs|pbspro|torque|qsub|qstat|lsf|bsub|bjobs|bqueues|bhosts|bkill|bpeek|lsload|msub|moab|maui|oarsub|oarstat|run:?ai|skypilot|condor_q|sge|grid engine)\b`), lazy.New(`ignore[- ]pbs`)},
	{
		foreign, lazy.New(`\b(?:kubernetes|k8s|kubectl|helm|kubeflow|openshift|nomad|mesos|htcondor|condor_submit|oar|flux|airflow|argo|terraform|ansible|jenkins|tensorflow|tf\.\w+|keras|jax|flax|mxnet|paddlepaddle|mindspore|pytorch lightning|sklearn|scikit|pandas|excel|powerpoint|photoshop|mysql|postgres|mongodb|redis|vue|react (?:native|app|component|hooks?|login|page|frontend)|angular|django|javascript|typescript|php|wordpress|android|iphone|minecraft|bitcoin|crypto|ethereum|(?:stock|share)s? (?:price|market|exchange|ticker|split|option|tip)s?|(?:nvidia|amd|intel|nvda|apple|tesla|tech) (?:stock|share)s?|nasdaq|weather forecast|rainy|sunny|snowing|umbrella|nvda|share price|market cap|temperature outside|restaurant|what (?:should|can|do|shall) (?:i|we) (?:cook|bake|eat)|voiced|futurama|pizza|dough|cheesecake|soup|poem|haiku|joke|limerick|lyrics|love song|movie|film|football|soccer|basketball|world cup|olympics|election|politics|capital of|horoscope|dating|girlfriend|boyfriend|flight tickets?|plane ticket|hotel|fever|medicine|ibuprofen|paracetamol|lawyer|lawsuit|divorce|tax return|income tax|visa application|homework|essay|flask|fastapi|nodejs|node\.js|npm|spring boot|java|html|css|sql|graphql|web app|website|scraper|scrape|ray|dask|spark|hadoop|flink|kafka|celery|prefect|dagster|luigi|snakemake|nextflow|docker[- ]compose|docker swarm|vllm|sglang|tensorrt-llm|ollama|llama\.cpp|comfyui|stable diffusion|langchain|autocad|latex|word document|spreadsheet|smartphone|gaming|video games?|cough|vaccine|dosage|toothache|back pain|meditation|workout|calories|wedding|birthday|landlord|mortgage|philosophy|meaning of life|what time is it|today'?s date|quantum|physics|chemistry|biology|who was|who invented|emperor|painting|guitar|piano|pods?|kubelet|eks|gke|volcano)\b|kubernetes|天气|气温|下雪|晴天|预报|咳嗽|医院|疼|头晕|过敏|量子|学物理|物理学|化学|历史(?:人物|事件|故事)|三国|哲学|人生|爬虫|网站|网页设计|mysql|手机推荐|打游戏|玩游戏|游戏显卡|买(?:什么|哪(?:个|款|张|块))显卡|买(?:什么|哪款)?(?:手机|电脑)|买房|租房|房东|贷款|结婚|聚餐|唱歌|写首|写个故事|故事|画画|英语作文|高考|数学题|方程|书推荐|推荐一本|推荐一部|推荐一个(?:餐|电|手)|容器编排|下雨|股票|股价|基金|比特币|汇率|吃什么|菜谱|做饭|红烧|炒菜|蛋糕|餐厅|外卖|电影|电视剧|小说|歌词|写(?:一)?首|写诗|作诗|首诗|笑话|讲个故事|星座|星期几|几点了|旅游|机票|酒店|签证|足球|篮球|世界杯|奥运|总统|首都|选举|政治|发烧|头疼|头痛|感冒|吃药|什么药|看病|医生|律师|离婚|起诉|税|作文|情书|女朋友|男朋友|减肥|彩票`),
		lazy.New(`\w\[\d|stock (?:image|script)|ignore[- ]pbs|git history|job history|history of (?:my|the|a) job|历史(?:作业|记录|任务)|作业历史|sacct|--label|array|ray_|合上笔记本|close the laptop|loss (?:curve|history)|slurmdbd|记账`),
	},
	{
		foreign, lazy.New(`(?:install|build|compile|set ?up|deploy|configure|upgrade)\w*\s+(?:a |an |the |own |my |new )?(?:slurm|slurmctld|slurmdbd|slurmd|munge)\b|slurm (?:installation|from source|from scratch|deb|rpm|upgrade guide)|(?:安装|部署|搭建|编译|装|升级|配置)(?:一个|一套)? ?(?:slurm|slurmctld|slurmdbd|munge)(?:$|[^a-z_ ]| (?:\d|集群|服务|数据库|教程))|slurm.{0,6}(?:安装|部署|搭建)`),
		lazy.New(`partition|job`),
	},
	{
		foreign, lazy.New(`\b(?:paddle\w*|mindspeed|ascend|npu|horovod\w*|netflix|battery life|juggle|photosynthesis|ceo|gaming|jenkins|grafana|prometheus server|xgboost|lightgbm|catboost|vpn|(?:install|buy|recommend|best)\b.{0,24}\blaptop|lakers|roast|chicken|miles|kilometers|population of|side effects?|aspirin|colossal-?ai|nginx|apache|windows (?:\d+|xp|update|laptop|server)|dinner|breakfast|snow(?:ing)?|sleet|hail|interview|cover letter|colab|gradio|streamlit|elasticsearch|rabbitmq|oracle|sqlite|mlflow|wandb pricing|blender|unity|unreal|roblox|tiktok|youtube|spotify|whisper|midjourney|chatgpt|copilot|claude|gemini)\b|\bgit (?:rebase|stash|cherry|bisect|blame|submodule)|(?:what|which) (?:model|llm|company) are you|are you (?:human|sentient|real|alive|an? (?:ai|bot|robot))|do you (?:like|love|dream|feel|have feelings)|who (?:made|trained|built) you|what(?:'s| is) new in\b|^\s*\d+\s*[-+*/x×]\s*\d+\s*(?:=|等于|is|\?|？)|\bsolve\b.{0,12}[a-z]\s*[\^=+]|(?:linked list|quick ?sort|bubble sort|fibonacci|regex for|leetcode)|slurm(?:ctld|dbd|d)? ?(?:集群|服务|控制器|数据库)? ?(?:的)?(?:高可用|主备|容灾)|` +
			`昇腾|飞桨|(?:笔记本|苹果|手机).{0,6}(?:怎么)?(?:装|买|推荐)|麻婆豆腐|驾照|滚动更新|缓存穿透|mybatis|聊天|取代人类|陪我|黑客|寒武纪|请假条|辞职|简历|面试|相亲|追女|追男|男生|女生|高铁|火车票|打车|快递|蓝屏|重装系统|怎么装系统|手游|王者|原神|奶茶|咖啡|火锅|晚饭|午饭|早饭|吃饭|健身|跑步鞋|考研|高数|线性代数|快速排序|冒泡|链表|斐波那契|力扣|反向代理|前端(?:开发|框架|工程|页面|代码|面试)|小程序|公众号|抖音|微博|你是(?:谁|什么模型|哪家|人|真人|机器人)|你叫什么|你喜欢|你多大|你会(?:唱|跳|爱)|你觉得我|最高的山|最长的河|哪个国家|鬼故事|下雪|台风`),
		lazy.New(`gpu node|megatron|nccl|torchrun|sbatch|srun|salloc|allocation|slurm job|teammate|colleague|co-?worker|同事|队友|\bci\b|作业报错|import|dos|carriage|换行|line.?(?:break|end)|api docs|interview node`),
	},
	{foreign, lazy.New(`\b(?:translate|summari[sz]e|rewrite|proofread)\b.{0,30}(?:this|the following)|\btranslate\b.{0,80}\b(?:in)?to (?:french|german|korean|japanese|spanish|italian|portuguese|russian|arabic|english|chinese|mandarin|latin|hindi|turkish|dutch|polish)|翻译|润色|改写这|总结这篇`), lazy.New(`squeue|sinfo|sacct|slurm|\bstate\b|\bcode\b|状态`)},
}

// killSwitch finds a question about the file that stops a job, which is no order
// to stop one.
var killSwitch = lazy.New(`kill[- ]?switch|终止开关|停机开关`)

// outOfScope reports why a question is declined before it is looked up; empty
// where it is not.
func outOfScope(text string) reason {
	low := strings.ToLower(text)
	for _, rules := range [][]scopeRule{requestRules, scopeRules, stateRules, subjectRules, neighbourRules, senseRules} {
		if why := declines(rules, low); why != "" {
			return why
		}
	}
	if asksForUnknown(text) {
		return noSuch
	}
	return ""
}

// declines is the reason of the first rule that a text in lower case meets, or
// empty.
func declines(rules []scopeRule, low string) reason {
	for _, r := range rules {
		if r.re.MatchString(low) && (r.unless == nil || !r.unless.MatchString(low)) && (r.why != act || !killSwitch.MatchString(low)) {
			return r.why
		}
	}
	return ""
}
