package knowledge

import "github.com/megatron-ops/megatron-ops/internal/lazy"

// Whether somebody asks for a deed, for the state of something or for a way is
// told by how the words are bound: a deed has a verb at the head of the
// sentence, behind nothing but politeness, and a definite object (this job, my
// branch, node 7) or a beneficiary (for me); a state is asked of one such thing
// in a yes or no, a how far or a when. Whoever asks how, with what or where to
// look wants the way.

// Pieces of the patterns below.
const (
	polite = `^[\s\p{P}]*(?:(?:please|pls|plz|kindly|hey|hi|ok|okay|so|now|just|quickly|then|also|and|can|could|would|will|you|u|go ahead and|be so kind (?:as )?to|i (?:want|need) you to|bot)[ ,:]+)*`
	hail   = `^[\s\p{P}]*(?:(?:hey|hi|ok|okay|so|now|just|then|also|and|bot)[ ,:]+)*`
	haste  = `\b[ ,]*(?:(?:just|now|also|quickly|please|kindly|go ahead and)[ ,]+)*`
	asked  = hail + `(?:please|pls|plz|kindly|would you|will you|go ahead and|be so kind (?:as )?to|i (?:want|need) you to)` + haste
	able   = hail + `(?:can|could) (?:you|u)` + haste
	deed   = `(?:cancel|scancel|kill|terminate|abort|stop|drain|undrain|reboot|restart|reset|requeue|resubmit|re-?run|relaunch|hold|release|resume|suspend|pause|submit|launch|delete|remove|erase|wipe|purge|clean|clear|empty|extend|bump|raise|increase|reduce|change|modify|grant|move|create|open|push|merge|commit|upload|download|send|post|announce|book|reserve|order|buy|install|upgrade|deploy|fix|repair|replace|unlock|assign|transfer|prioriti[sz]e|boost|promote|approve|put|take|bring|shut ?down|power ?off|turn (?:off|on)|add|lower|shorten)`
	ended  = `(?:scancel|cancel|kill|terminate|abort|stop|drain|undrain|reboot|restart|reset|requeue|resubmit|re-?run|relaunch|hold|release|resume|suspend|pause|extend|bump|prioriti[sz]e|shut ?down|power ?off|turn (?:off|on)|unlock|free(?: up)?)`
	thing  = `(?:(?:the |my |our |his |her |slurm )?(?:jobs?|runs?|tasks?|arrays?|steps?)? ?(?:id |number )?#?\d{3,}|(?:the |our )?(?:node|host|machine|server|dgx|hgx|gpu|cn|gn|rack)s?[- ]?\d+)\b`
	way    = `\bhow (?:do|can|could|to|does|would|should)\b|\b(?:which|what) (?:command|flag|option)|\bwhere (?:do|can|could|should|would|to)\b|怎么|怎样|如何|咋|哪看|哪查|哪找|哪里(?:能|可以)?(?:看|查|找)|哪儿(?:看|查|找)|什么命令|哪个命令|哪条命令|啥命令|命令是|办法|方法`

	doing   = `(?:取消|杀掉|杀了|干掉|删除|删掉|删了|清空|清掉|清理|停掉|停了|停下|终止|结束掉|关掉|关机|重启|重跑|重提|重新提交|重新跑|提交|释放|恢复|暂停|挂起|下线|上线|踢掉|踢出|(?:un)?drain|scancel|kill|cancel|requeue|hold|release|reboot|resume|suspend|延长|加到|调到|调高|调低|提到|提高|改到|改成|改为|改一下|设成|设为|加一下|加上|批准|批一下|合到|合并|推到|推上去|上传|升级|装上|装一下)`
	favours = `(?:帮我|帮忙|替我|麻烦你?|劳驾|拜托|请你|顺手|赶紧|马上|立刻|赶快|现在就)`
)

// requestRules decline what is to be done for somebody.
var requestRules = []scopeRule{
	{
		act, lazy.New(polite + ended + ` ` + thing + `|` +
			polite + `(?:set|put|move|change|raise|give) (?:the )?(?:priority|time limit|partition|qos) of ` + thing + `|` +
			asked + deed + `\b.{0,24}\b(?:my|our|this|that|these|those|the|all|every|everything|his|her|\d{3,}|slurm)\b|` +
			able + deed + `\b.{0,16}(?:\b(?:my|our|everyone|everything)\b|\d{3,})|` +
			able + `(?:watch|keep an eye on|babysit|mind|look after|guard)\b.{0,16}\b(?:my|our|the|this) (?:\w+ )?(?:jobs?|runs?|training|tasks?)\b|` +
			polite + deed + `\b.{0,60}\b(?:for me|for us|for (?:my|our|the) team|on my behalf)\b|` +
			polite + deed + `\b.{0,40}\b(?:please|pls|plz)[\s\p{P}]*$|` +
			polite + `(?:restart|reload|stop|start|kill) (?:the )?(?:slurm|slurmctld|slurmd|slurmdbd|munged?|controller|bot|server)(?: (?:now|please|pls|service|daemon|again|for me))*[\s\p{P}]*$|` +
			polite + `(?:submit|launch|run|start|re-?run|resubmit) the (?:\w+ ){0,3}i (?:sent|wrote|gave|posted|made|attached)\b|` +
			// word to somebody, of something
			polite + `(?:tell|message|notify|e?-?mail|text|ping|inform|alert|warn|remind|send|post|announce|write|let)\b.{0,40}\b(?:team|admins?|administrators?|boss|manager|colleagues?|everyone|everybody|group|lab|channel|slack|support|ops|helpdesk|users?)\b.{0,20}\b(?:that|saying|is|are|know)\b|` +
			// a change of somebody's sources, a hand on a machine
			polite + `(?:open|create|make|file|raise|submit|push|merge|commit|close|approve)\b.{0,32}\b(?:pr|pull request|merge request|mr|branch|issue|ticket)\b.{0,40}\b(?:my|the|this) (?:fix|change|patch|branch|commit|code|bug)|` +
			polite + `(?:ssh|log|hop|go) ?(?:in)?(?:to| to| on)? ?(?:the )?(?:node|host|machine)?\b.{0,20}\band (?:reboot|restart|kill|delete|stop|drain|fix|clean|remove|run)\b|` +
			// to the gain or the harm of somebody by name
			polite + `(?:give|grant|assign|transfer)\b.{0,20}\b(?:user|account|group|him|her|them)\b.{0,40}\b(?:hours?|gpus?|quota|access|permissions?|rights|priority|nodes?)\b|` +
			polite + `(?:cancel|scancel|kill|stop|terminate|delete|remove)\b.{0,16}\b(?:everything|anything|all|every job|whatever)\b.{0,12}\b(?:user )?[a-z]+ (?:is|has|was) (?:running|queued|submitted|started)\b|` +
			polite + `(?:delete|erase|wipe|rm|remove|clean (?:up|out)|clear)\b.{0,24}\s/\w+/\w|` +
			polite + `(?:fix|debug|rewrite|improve|optimi[sz]e|correct|edit|patch) (?:my|our|the bug in my|the bug in the|this) (?:\w+ )?(?:script|code|job|config\w*|run|file|launcher)\b|` +
			polite + `(?:clone|run|start|execute|do|finish|handle|compile)\b.{0,60}\b(?:for me|for us|on my behalf)\b|` +
			polite + `(?:format|wipe|partition) (?:the |my |our )?(?:\w+ )?(?:disk|drive|filesystem|volume)\b|` +
			polite + `(?:give|grant|get|make|open|create) (?:me|us) (?:an? |the |some |more |full )?(?:new )?(?:sudo|root|admin|access|permissions?|rights|account|quota|priority|gpu hours?)\b|` +
			polite + `(?:add|register|install|put) (?:my|our) (?:\w+ )?(?:keys?|account|user|name|ip)\b|` +
			polite + `(?:merge|approve|review|close|rebase|push) (?:my|our) \w+[\s\p{P}]*$|` +
			polite + `(?:upgrade|install|update|patch|downgrade) (?:the )?[\w. -]{2,24} on (?:all|every|the|our) (?:\w+ )?(?:nodes?|machines?|cluster|hosts?)\b|` +
			polite + `(?:list|print|show|dump) (?:me )?(?:the |all )?env\w* .{0,20}\b(?:bot|server|process|host)\b|` +
			polite + `(?:open|create|file|raise|submit) (?:me )?(?:an? |the )?(?:\w+ )?(?:ticket|support case|support request)\b|` +
			polite + `(?:whitelist|allowlist|unban|unblock) \w+|` +
			polite + `(?:schedule|arrange|set up|organi[sz]e|book) (?:a |the )?(?:\w+ )?(?:meeting|call|appointment|room|reservation for)\b|` +
			polite + `order (?:\w+ ){1,3}(?:dgx|gpus?|nodes?|servers?|h100|h200|b200)`),
		lazy.New(way + `|^[\s\p{P}]*(?:can|could) (?:you|u) (?:explain|show|tell|help|give)|\b(?:mean|means|difference|versus|vs)\b|without|instead of|--\w|when (?:it|the|a|my) |\bif\b|[?？][\s\p{P}]*$|after \d|until|automatically|unless|\bcommand\b|\bright[\s\p{P}]*$|\bcorrect[\s\p{P}]*$|[吗吧么][\s\p{P}]*$`),
	},
	{
		act, lazy.New(favours + `.{0,30}` + doing + `|^[\s\p{P}]*(?:请|帮|给我|替我)(?:把|将|我)?.{0,2}` + doing + `|^[\s\p{P}]*(?:请|帮|给我)?(?:把|将)(?:.{0,6}(?:\d{3,}|[a-z]+-?\d+|我的|我们的|昨天|刚才|那个|这个|小\p{Han}|别人).{0,12}|.{0,6}(?:所有|全部).{0,16})` + doing + `(?:了|掉|吧|一下|一遍|呗|上去|主干|最高|最低|最前|[\s\p{P}])*$|` +
			`^[\s\p{P}]*` + doing + `(?:一下|掉|了)? ?(?:我的?)?(?:作业|任务|job)? ?(?:\d{4,}|[a-z]+-?\d+)(?: ?号)?(?:作业|任务|节点)?(?:吧|一下|[\s\p{P}])*$|` +
			`^[\s\p{P}]*(?:清空|删除|删掉|删光|清理|格式化)(?:一下|掉)? ?[/~]\S+(?: ?(?:目录|下).{0,8})?$|` +
			`^[\s\p{P}]*(?:` + favours + `|请|给)?.{0,2}(?:给|通知|告诉|提醒|转告|艾特|发.{0,6}(?:给|通知)).{0,6}(?:大家|管理员|同事|老板|群里|小\p{Han}|老\p{Han}|所有人|运维|用户).{0,20}(?:坏|挂了|说|开通|配额|权限|卡时|要维护|优先级|一声)|` +
			`(?:` + favours + `|请|给我|给咱).{0,6}(?:开|建|批|申请|订|约|预定|预约)(?:个|一个|一下|通|几台|\d).{0,16}(?:预留|账号|权限|配额|节点|机器|会议|卡)|^[\s\p{P}]*给(?:我|我的|我们|咱|小).{0,8}(?:加|开|提).{0,10}(?:权限|配额|卡时|优先级)|^[\s\p{P}]*把.{1,12}(?:升|更新|升级)到(?:最新|\d)|^[\s\p{P}]*发(?:个|一个|条)(?:通知|邮件|消息|公告).{0,4}(?:给|告诉|通知|说)`),
		lazy.New(way + `|[?？吗][\s\p{P}]*$|脚本|例子|示例|模板|报错|error|给我(?:个|一个|看)|之后|以后|的时候|意思|区别|自动|slurm (?:在|给)|能不能|能帮我|权限不|没权限|会|被|每天|定期|定时|对吧|是吧|没错吧|对不对|行不行|就行`),
	},
}

// stateRules decline what only the cluster of whoever asks can tell: how one
// job, run or machine stands, how many there are, what will come of them.
var stateRules = []scopeRule{
	{
		live, lazy.New(`^[\s\p{P}]*(?:so |and |hey |hi |ok )?(?:is|are|was|were|did|does|do|has|have|will|when (?:does|do|did|will|is)|how far|how much longer|where|why (?:is|did|was)|what(?:'s| is))\b.{0,28}\b(?:job|run|training|task|array)(?: id)? ?#?\d{3,}\b|` +
			`\b(?:this (?:very )?|the very )(?:minute|second|instant|hour)\b|\bhow many .{0,32}(?:ahead of|in front of|before) me\b|` +
			`^[\s\p{P}]*(?:has|did|is|was|will|have) (?:my|our|the|his|her) (?:\w+ ){0,3}(?:training|run|job|model)\b.{0,24}\b(?:reach|reached|past|passed|hit|got|done|finish|finished|crash|crashed|fail|failed|start|started|converged?)\b|` +
			`\b(?:node|gpu|core|cpu|machine)[- ]?hours?\b.{0,16}\b(?:left|remaining|burn|burned|spent)\b|` +
			`\bwhat(?:'s| is| are) the (?:current|latest|present|last) (?:\w+ )?(?:loss|step|iteration|state|status|progress|throughput|speed|load)\b.{0,12}\b(?:of|for|in) (?:my|the|our|job|run)\b|` +
			`^[\s\p{P}]*(?:(?:is|are) )?(?:there )?any(?:thing|body|one)?\b.{0,12}\b(?:free|idle|available|running)\b.{0,12}(?:gpus?|nodes?|machines?|cards?|[abh]\d00s?|gb\d00s?|on [a-z]+-?\d+)|\b(?:just|only) the (?:value|number|count|figure|name|answer)s?[\s\p{P}]*$|` +
			`\b(?:how long (?:until|before|till)|how much longer|who|which node)\b.{0,24}\b(?:job|run|task) ?#?\d{4,}\b|\btell me the (?:\w+ )?(?:loss|step|iteration|state|progress)\b|` +
			`^[\s\p{P}]*(?:how busy|how full|how loaded|how many (?:people|users))\b`),
		lazy.New(way + `|--\w|\bmean|error|traceback|depend|afterok|afterany|afternotok|\bif\b|squeue|sinfo|sacct|scontrol|\breason\b|\(|\bpd\b|pending|\bafter\b|where can|\beta\b|log says|logs? say|printed`),
	},
	{ // what somebody else may
		live, lazy.New(`^[\s\p{P}]*(?:is|does|can|may|has) [a-z]{3,12} (?:allowed|permitted|have access|in the|part of)\b`),
		lazy.New(`^[\s\p{P}]*(?:is|does|can|may|has) (?:it|there|this|that|what|root|mpi|sudo|ssh|nccl|slurm|srun|sbatch|salloc|which|python|docker|pyxis|enroot|megatron|torchrun|running|sharing|using|every|everything|each|one|the|anyone|training|any|my|flash|rank)\b`),
	},
	{
		live, lazy.New(`(?:^[\s\p{P}]*(?:我的?)?|作业|任务|job ?) ?#?\d{4,} ?(?:号|这个|那个)?(?:的)?(?:作业|任务|job)?.{0,6}(?:跑|结束|完成|成功|失败|排|开始|好|还要).{0,10}(?:了吗|了没|没有|吗|没|第几|多久|到哪|几步)(?:能|才|可以)?(?:跑完|结束|完成|开始|步|了)*[\s\p{P}]*$|[a-z]+-?\d+.{0,3}(?:是不是)?(?:又|还|已经)?(?:挂|坏|恢复|在线|空着|死)(?:了|着)?(?:吗|没)?[\s\p{P}]*$|` +
			`(?:几|多少).{0,8}在?我(?:的)?前面|我(?:的)?前面.{0,8}(?:几|多少)|(?:今天|明天|今晚|明早|周末|下午|月底|下周).{0,6}(?:我的?|我们的?|这个).{0,8}(?:任务|作业|训练|实验).{0,6}(?:能|会|可以).{0,8}(?:排上|跑完|开始|跑上|轮到|结束|训完)|(?:作业|任务|job) ?\d{4,} ?(?:挂|死|崩)|多久.{0,4}(?:作业|任务|job) ?\d{4,}[\s\p{P}]*$|(?:哪个|哪台|哪些)(?:节点|机器|分区).{0,6}最(?:闲|忙|空|热)|还有(?:几|多少)(?:块|张|台|个).{0,14}(?:能用|可用|空着?|闲着?|没人用)|(?:lustre|nfs|/scratch|/home|存储|磁盘|盘).{0,6}(?:还剩|剩下?|还有).{0,4}(?:多少|几)`),
		lazy.New(way + `|在哪|去哪|哪里|依赖|之后|原因|为什么|报错|error|sacct|squeue|sinfo|df |=\d`),
	},
}
