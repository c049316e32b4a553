package web

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	textSignInFirst      = lang.Text{EN: "sign in first", ZH: "请先登录"}
	textNoStore          = lang.Text{EN: "the server's database does not answer; nothing was done. Try again in a few seconds", ZH: "服务的数据库没有响应，没有执行任何操作；请几秒后再试"}
	textSignIn           = lang.Text{EN: "Sign in", ZH: "登录"}
	textTicketOver       = lang.Text{EN: "this link has been used, or is older than ten minutes", ZH: "该链接已使用过，或已超过十分钟"}
	textNoCode           = lang.Text{EN: "the code has expired", ZH: "代码已失效"}
	textNoCodeFix        = lang.Text{EN: "reload the page to get a new one", ZH: "请重新加载页面获取新代码"}
	textNotYet           = lang.Text{EN: "the code has not been written on the cluster yet: run the command first, then press the button", ZH: "集群上还没有写入该代码：请先运行命令，再点按钮"}
	textTooMany          = lang.Text{EN: "too many codes were requested in the last hour", ZH: "一小时内申请的代码过多"}
	textTooManyFix       = lang.Text{EN: "try again later, or sign in by a link: /megatron web in Slack, megatron-ops web in the shell", ZH: "请稍后再试，或用链接登录：Slack 中 /megatron web，终端中 megatron-ops web"}
	textProviderAway     = lang.Text{EN: "%s does not answer", ZH: "%s 无响应"}
	textProviderAwayFix  = lang.Text{EN: "try again in a minute, or sign in another way", ZH: "请稍后重试，或换一种方式登录"}
	textOtherSignIn      = lang.Text{EN: "this answer does not belong to a sign-in that this browser started in the last ten minutes", ZH: "该应答不属于本浏览器十分钟内发起的登录"}
	textOtherSignInFix   = lang.Text{EN: "sign in again from this page", ZH: "请从本页重新登录"}
	textProviderWrong    = lang.Text{EN: "%s did not sign you in: %s", ZH: "%s 未能让您登录：%s"}
	textOtherIssuer      = lang.Text{EN: "the answer names another issuer", ZH: "应答来自其他签发方"}
	textNoToken          = lang.Text{EN: "it did not exchange its code for a token", ZH: "未能用授权码换取令牌"}
	textBadToken         = lang.Text{EN: "its ID token is not valid: %s", ZH: "ID 令牌无效：%s"}
	textOtherNonce       = lang.Text{EN: "its ID token belongs to another sign-in", ZH: "ID 令牌属于另一次登录"}
	textOtherParty       = lang.Text{EN: "its ID token was issued to another program", ZH: "ID 令牌签发给了其他程序"}
	textOtherAccess      = lang.Text{EN: "its ID token belongs to another access token", ZH: "ID 令牌与访问令牌不匹配"}
	textNoSubject        = lang.Text{EN: "its ID token names nobody", ZH: "ID 令牌没有写明用户"}
	textNoClaim          = lang.Text{EN: "the ID token has no claim %s", ZH: "ID 令牌中没有 %s"}
	textUnverified       = lang.Text{EN: "the provider has not verified the address %s", ZH: "身份提供方未验证地址 %s"}
	textNobody           = lang.Text{EN: "%s is not mapped to a cluster user", ZH: "%s 未对应任何集群用户"}
	textNobodyFix        = lang.Text{EN: "an operator names the cluster user in web.oidc.users", ZH: "请管理员在 web.oidc.users 中写明对应的集群用户"}
	textNotLinked        = lang.Text{EN: "you are not linked to a cluster user", ZH: "您尚未绑定集群用户"}
	textNotLinkedFix     = lang.Text{EN: "/megatron link in Slack, once", ZH: "请先在 Slack 中执行一次 /megatron link"}
	textNotFromHere      = lang.Text{EN: "job %s was not submitted through megatron-ops", ZH: "作业 %s 不是通过 megatron-ops 提交的"}
	textNotFromHereFix   = lang.Text{EN: "only jobs submitted through megatron-ops are kept", ZH: "只保存通过这里提交的作业"}
	textSpec             = lang.Text{EN: "Specification", ZH: "规格"}
	textScript           = lang.Text{EN: "Script", ZH: "脚本"}
	textNotSubmitted     = lang.Text{EN: "not submitted yet", ZH: "尚未提交"}
	textForgotten        = lang.Text{EN: "Slurm no longer knows job %s", ZH: "Slurm 已不再保存作业 %s"}
	textTooMuchLog       = lang.Text{EN: "the logs are too large to merge within ten seconds", ZH: "日志过大，十秒内无法合并读取"}
	textTooMuchLogFix    = lang.Text{EN: "choose one file, or remove the filters", ZH: "请选择单个文件，或去掉筛选条件"}
	textProblem          = lang.Text{EN: "That did not work", ZH: "出错了"}
	textNoAnswer         = lang.Text{EN: "%s returned nothing that a page can show", ZH: "%s 没有返回网页可显示的结果"}
	textJobs             = lang.Text{EN: "Jobs", ZH: "作业"}
	textNodes            = lang.Text{EN: "Nodes", ZH: "节点"}
	textUsage            = lang.Text{EN: "Usage", ZH: "用量"}
	textApprovals        = lang.Text{EN: "Approvals", ZH: "审批"}
	textSubmitted        = lang.Text{EN: "submitted", ZH: "已提交"}
	textStarted          = lang.Text{EN: "started", ZH: "已开始"}
	textExpected         = lang.Text{EN: "expected to start", ZH: "预计开始"}
	textRequeued         = lang.Text{EN: "put back into the queue: %s", ZH: "重新排队：%s"}
	textEnded            = lang.Text{EN: "ended: %s", ZH: "已结束：%s"}
	textNoSuchLog        = lang.Text{EN: "the job has no such log", ZH: "该作业没有这个日志"}
	textNoSuchLogFix     = lang.Text{EN: "load the job's page again", ZH: "请重新加载作业页面"}
	textNoSuchAct        = lang.Text{EN: "the page does not offer %q", ZH: "本页不支持 %q"}
	textOperatorsOnly    = lang.Text{EN: "only operators decide", ZH: "只有管理员可以审批"}
	textOperatorsOnlyFix = lang.Text{EN: "operators are listed in web.operators", ZH: "管理员由 web.operators 指定"}
	textAskedOperators   = lang.Text{EN: "The operators were asked", ZH: "已通知管理员"}
)

var statesZH = map[slurm.State]string{
	slurm.Pending: "排队中", slurm.Running: "运行中", slurm.Completed: "已完成", slurm.Failed: "失败", slurm.Cancelled: "已取消", slurm.Timeout: "超时",
	slurm.Preempted: "被抢占", "OUT_OF_MEMORY": "内存不足", "NODE_FAIL": "节点故障", "BOOT_FAIL": "节点启动失败", "DEADLINE": "超过截止时间",
	"COMPLETING": "收尾中", "CONFIGURING": "准备节点中", "SUSPENDED": "已挂起", "REQUEUED": "重新排队", "STOPPED": "已停止", slurm.Ended: "已结束",
}

// labels are the words of the templates, by key.
var labels = map[string]lang.Text{
	"noscript":    {EN: "The diagnosis, the curves and the logs of this page need JavaScript, which is off.", ZH: "本页的诊断、曲线和日志需要 JavaScript，而浏览器未启用。"},
	"skip":        {EN: "Skip to the content", ZH: "跳到正文"},
	"signout":     {EN: "Sign out", ZH: "退出"},
	"theme":       {EN: "Light or dark", ZH: "浅色或深色"},
	"other":       {EN: "中文", ZH: "English"},
	"menu":        {EN: "Parts of the program", ZH: "程序导航"},
	"jobs":        {EN: "Jobs", ZH: "作业"},
	"nodes":       {EN: "Nodes", ZH: "节点"},
	"usage":       {EN: "Usage", ZH: "用量"},
	"approvals":   {EN: "Approvals", ZH: "审批"},
	"mine":        {EN: "Mine", ZH: "我的"},
	"everybody":   {EN: "Everybody's", ZH: "所有人"},
	"any":         {EN: "Any state", ZH: "全部状态"},
	"running":     {EN: "Running", ZH: "运行中"},
	"waiting":     {EN: "Waiting", ZH: "排队中"},
	"ended":       {EN: "Ended", ZH: "已结束"},
	"filter":      {EN: "Filter by id, name, user, partition or node", ZH: "按作业号、名称、用户、分区或节点筛选"},
	"show":        {EN: "Show", ZH: "显示"},
	"cluster":     {EN: "Cluster", ZH: "集群"},
	"job":         {EN: "Job", ZH: "作业"},
	"name":        {EN: "Name", ZH: "名称"},
	"state":       {EN: "State", ZH: "状态"},
	"size":        {EN: "Size", ZH: "规模"},
	"time":        {EN: "Time", ZH: "时间"},
	"where":       {EN: "Where, or why it waits", ZH: "所在节点或等待原因"},
	"user":        {EN: "User", ZH: "用户"},
	"none":        {EN: "No job fits.", ZH: "没有符合条件的作业。"},
	"nonefirst":   {EN: "megatron-ops submit, or /megatron submit in Slack, makes the first one; “Everybody's” shows those of others.", ZH: "用 megatron-ops submit 或在 Slack 中用 /megatron submit 提交第一个作业；“所有人”可查看其他人的作业。"},
	"pages":       {EN: "Pages", ZH: "分页"},
	"previous":    {EN: "Previous", ZH: "上一页"},
	"next":        {EN: "Next", ZH: "下一页"},
	"life":        {EN: "Life", ZH: "经过"},
	"details":     {EN: "Details", ZH: "详情"},
	"cancel":      {EN: "Cancel…", ZH: "取消…"},
	"requeue":     {EN: "Requeue…", ZH: "重新排队…"},
	"hold":        {EN: "Hold…", ZH: "暂停排队…"},
	"release":     {EN: "Release…", ZH: "恢复排队…"},
	"again":       {EN: "Submit again…", ZH: "再次提交…"},
	"curves":      {EN: "Curves", ZH: "曲线"},
	"compare":     {EN: "Compare with job", ZH: "对比作业"},
	"comparego":   {EN: "Compare", ZH: "对比"},
	"nocurves":    {EN: "No iteration was logged yet.", ZH: "还没有迭代日志。"},
	"diagnosis":   {EN: "Diagnosis", ZH: "诊断"},
	"diagnose":    {EN: "Diagnose now", ZH: "立即诊断"},
	"reading":     {EN: "Reading the logs …", ZH: "正在读取日志…"},
	"evidence":    {EN: "Evidence (each line opens the log there)", ZH: "依据（点击可打开日志对应位置）"},
	"fix":         {EN: "A plan has accepted this change", ZH: "以下修改已通过检查"},
	"applyfix":    {EN: "Apply the fix and submit again…", ZH: "应用修复并重新提交…"},
	"log":         {EN: "Log", ZH: "日志"},
	"file":        {EN: "File", ZH: "文件"},
	"allfiles":    {EN: "all, newest lines", ZH: "全部（最新行）"},
	"find":        {EN: "Only lines with", ZH: "只显示包含"},
	"follow":      {EN: "Follow", ZH: "跟随"},
	"newest":      {EN: "Newest", ZH: "最新"},
	"oldest":      {EN: "Oldest", ZH: "最早"},
	"cause":       {EN: "To the cause", ZH: "跳到原因"},
	"nolog":       {EN: "No log file is there yet.", ZH: "还没有日志文件。"},
	"more":        {EN: "More", ZH: "更多"},
	"changes":     {EN: "Changes since the submission before", ZH: "与上一次提交的差异"},
	"good":        {EN: "Beside the last good run", ZH: "与最近成功的运行对比"},
	"metrics":     {EN: "Numbers", ZH: "指标"},
	"spec":        {EN: "Specification and script", ZH: "规格与脚本"},
	"plan":        {EN: "Plan, as of now", ZH: "当前的检查结果"},
	"requeued":    {EN: "put back into the queue after", ZH: "重新排队，此前"},
	"pipeline":    {EN: "Pipeline", ZH: "流水线"},
	"stepsdone":   {EN: "%d of %d steps completed", ZH: "已完成 %d/%d 步"},
	"after":       {EN: "after", ZH: "依赖"},
	"broke":       {EN: "It broke at %s", ZH: "在 %s 处中断"},
	"resume":      {EN: "Mend what broke (its job has the diagnosis). Then %s goes on by this command; it submits that step and what follows it, and nothing twice:", ZH: "先修复出错的步骤（其作业页面有诊断），再由 %s 执行以下命令继续：只提交该步及其后续，不会重复提交。"},
	"resumefile":  {EN: "Mend what broke, then submit the same pipeline again: that step and what follows it are submitted, and nothing twice.", ZH: "修复出错的步骤后再次提交同一流水线：只提交该步及其后续，不会重复提交。"},
	"earlier":     {EN: "earlier tries", ZH: "此前的尝试"},
	"handed":      {EN: "handed on to it", ZH: "接收的值"},
	"attempts":    {EN: "Attempts", ZH: "历次运行"},
	"account":     {EN: "Account", ZH: "账户"},
	"partition":   {EN: "Partition", ZH: "分区"},
	"qos":         {EN: "QOS", ZH: "QOS"},
	"day":         {EN: "Day", ZH: "日"},
	"week":        {EN: "Week", ZH: "周"},
	"month":       {EN: "Month", ZH: "月"},
	"allranks":    {EN: "all", ZH: "全部"},
	"level":       {EN: "Level", ZH: "级别"},
	"alllevels":   {EN: "all lines", ZH: "全部"},
	"warnings":    {EN: "warnings, errors", ZH: "警告与错误"},
	"errors":      {EN: "errors", ZH: "错误"},
	"node":        {EN: "Node", ZH: "节点"},
	"iteration":   {EN: "iteration", ZH: "迭代"},
	"iterations":  {EN: "Iterations", ZH: "迭代"},
	"to":          {EN: "to", ZH: "至"},
	"zoom":        {EN: "Zoom", ZH: "缩放"},
	"whole":       {EN: "Whole run", ZH: "全程"},
	"zoomhow":     {EN: "Drag in a curve to zoom into all of them.", ZH: "在曲线上拖动即可放大全部曲线。"},
	"searching":   {EN: "searching…", ZH: "正在查找…"},
	"nolines":     {EN: "No such line.", ZH: "没有符合条件的行。"},
	"of":          {EN: "Whose", ZH: "范围"},
	"days":        {EN: "Days", ZH: "天数"},
	"by":          {EN: "By", ZH: "分组"},
	"steps":       {EN: "Steps", ZH: "作业步"},
	"priority":    {EN: "Priority", ZH: "优先级"},
	"yes":         {EN: "Yes, do it", ZH: "确认执行"},
	"no":          {EN: "No, go back", ZH: "不，返回"},
	"askfirst":    {EN: "Ask an operator", ZH: "请管理员审批"},
	"heldby":      {EN: "An operator must approve this", ZH: "需要管理员审批"},
	"heldhow":     {EN: "Nothing was done. Once an operator has approved it, press the same button again within a day.", ZH: "尚未执行任何操作。管理员批准后，请在一天内再次点击同一按钮。"},
	"back":        {EN: "Back", ZH: "返回"},
	"what":        {EN: "What would be done", ZH: "将要执行的操作"},
	"approve":     {EN: "Approve", ZH: "批准"},
	"decline":     {EN: "Decline", ZH: "拒绝"},
	"reason":      {EN: "Reason", ZH: "理由"},
	"noapprovals": {EN: "Nothing waits for a decision.", ZH: "没有待审批的请求。"},
	"asks":        {EN: "asks for", ZH: "请求"},
	"until":       {EN: "until", ZH: "有效期至"},
	"notyours":    {EN: "Somebody else decides about your own requests.", ZH: "您自己的请求需由他人审批。"},
	"signas":      {EN: "Sign in as %s", ZH: "以 %s 登录"},
	"signhow":     {EN: "On a login node of the cluster, as yourself, run this within ten minutes, then press the button. Never run a code that somebody else sent you.", ZH: "请在十分钟内，用您自己的账号在集群登录节点上运行以下命令，然后点按钮。切勿运行别人发给您的代码。"},
	"signdone":    {EN: "I have run it", ZH: "我已运行"},
	"signlink":    {EN: "With a one-time link: /megatron web in Slack, or megatron-ops web where the server runs.", ZH: "使用一次性链接：在 Slack 中输入 /megatron web，或在服务器所在机器运行 megatron-ops web。"},
	"keys":        {EN: "Keys: / filter · j k rows · Enter opens · g c cause · g l log · ? this help", ZH: "快捷键：/ 筛选 · j k 选择行 · Enter 打开 · g c 原因 · g l 日志 · ? 帮助"},
	"offline":     {EN: "This server does not answer. The page shows the state of", ZH: "服务器无响应，页面显示的是该时刻的状态："},
	"asof":        {EN: "The cluster does not answer; this is as of", ZH: "集群无响应，以下为该时刻的状态："},
	"rank":        {EN: "rank", ZH: "rank"},
	"gpuhours":    {EN: "GPU hours", ZH: "GPU 小时"},
	"script":      {EN: "show all of it", ZH: "展开全文"},
}
