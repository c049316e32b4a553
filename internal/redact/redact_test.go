package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/redact"
)

func TestSecretsAreMasked(t *testing.T) {
	hex, uuid := strings.Repeat("0123456789abcdef", 3)[:40], "0a1b2c3d-1a2b-3c4d-5e6f-0a1b2c3d4e5f"
	for name, s := range map[string]struct{ text, secret string }{
		"wandb key by name":   {"export WANDB_API_KEY=" + hex, hex},
		"hub token":           {"login with hf_" + strings.Repeat("aB3", 8), "hf_" + strings.Repeat("aB3", 8)},
		"aws key id":          {"key AKIA" + "ABCDEFGHIJKLMNOP used", "AKIA" + "ABCDEFGHIJKLMNOP"},
		"bearer":              {"Authorization: Bearer abcdefgh12345678", "abcdefgh12345678"},
		"basic":               {"authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"},
		"slack":               {"token is xo" + "xb-123456789012-abcdefgh", "123456789012-abcdefgh"},
		"github":              {"clone with gh" + "p_" + strings.Repeat("a1B2", 9), strings.Repeat("a1B2", 9)},
		"address":             {"postgres://bot:s3cr3tpw@db/ops", "s3cr3tpw"},
		"json setting":        {`{"api_key": "abcd1234efgh"}`, "abcd1234efgh"},
		"option":              {"train.py --wandb-api-key abcd1234efgh --lr 1", "abcd1234efgh"},
		"private key":         {"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nxyz\n-----END RSA PRIVATE KEY-----", "MIIE"},
		"cut private key":     {"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz", "b3BlbnNz"},
		"json web token":      {"SLURM_JWT=eyJhbGciOiJI.eyJleHAiOjE3.c2lnbmF0dXJl", "eyJleHAiOjE3"},
		"signed address":      {"GET https://s/x?X-Amz-Signature=deadbeefdeadbeef&a=1", "deadbeefdeadbeef"},
		"password by name":    {"DB_PASSWORD='hunter22'", "hunter22"},
		"password of a path":  {"kv/team/password: hunter22", "hunter22"},
		"assigned in a path":  {"https://host/x/password=hunters", "hunters"},
		"a word by itself":    {"password: hunters", "hunters"},
		"a word after others": {"the password: hunters", "hunters"},
		"a header of curl":    {"curl -H 'X-Api-Key: zx81kq8zt3vlw9' https://host", "zx81kq8zt3vlw9"},
		"a user of curl":      {"curl -s -u 'me:hunter22' https://host", "hunter22"},
		"a user in long":      {"+ curl --user=me:hunter22 https://host", "hunter22"},
		"a user of a proxy":   {"curl --proxy-user me:hunter22 https://host", "hunter22"},
		"hook":                {"post to https://hooks.slack.com/services/T0/B0/abcdef", "T0/B0/abcdef"},
		"shouted pass":        {"MYSQL_PASS=hunter22x", "hunter22x"},
		"shouted pwd":         {"export DB_PWD='hunter22x'", "hunter22x"},
		"encryption key":      {"ENCRYPTION_KEY: 9f86d081884c7d65", "9f86d081884c7d65"},
		"an index":            {`os.environ["WANDB_API_KEY"] = "` + hex + `"`, hex},
		"an index, bare":      {`os.environ['HF_TOKEN']='zx81kq8zt3vlw9'`, "zx81kq8zt3vlw9"},
		"two arguments":       {`os.environ.setdefault("HF_TOKEN", "zx81kq8zt3vlw9")`, "zx81kq8zt3vlw9"},
		"a login's key":       {`wandb.login(key="` + hex + `")`, hex},
		"a login's token":     {`login('zx81kq8zt3vlw9')`, "zx81kq8zt3vlw9"},
		"a hook of Discord":   {"https://discord.com/api/webhooks/1234/zx81kq8zt3vlw9", "zx81kq8zt3vlw9"},
		"a hook of Feishu":    {"https://open.feishu.cn/open-apis/bot/v2/hook/" + uuid, uuid},
		"a hook of Teams":     {"https://x.webhook.office.com/webhookb2/" + uuid + "@a/IncomingWebhook/" + hex, hex},
		"a bot of Telegram":   {"https://api.telegram.org/bot1234:zx81kq8zt3vlw9/sendMessage", "zx81kq8zt3vlw9"},
		"docker's login":      {"+ docker login -u me -p zx81kq8zt3vlw9 nvcr.io", "zx81kq8zt3vlw9"},
		"sshpass":             {"+ sshpass -p 'hunter22x' ssh host", "hunter22x"},
		"escaped json":        {`{"body":"{\"password\":\"hunter22x\"}"}`, "hunter22x"},
		"url-encoded json":    {"q=%7B%22token%22%3A%22abcd1234efgh%22%7D", "abcd1234efgh"},
		"percent in a value":  {"password=a%40bcdefg", "bcdefg"},
		"token as a login":    {"git clone https://" + strings.Repeat("a1B2c3", 5) + "@host/repo", strings.Repeat("a1B2c3", 5)},
		"netrc":               {"machine api.wandb.ai login user password " + hex, hex},
		"azure storage":       {"AccountName=a;AccountKey=" + strings.Repeat("aB3d", 21) + "==;EndpointSuffix=x", strings.Repeat("aB3d", 21)},
		"stripe":              {"sk_li" + "ve_" + strings.Repeat("a1B2", 6), strings.Repeat("a1B2", 6)},
		"discord hook":        {"DISCORD_WEBHOOK=https://discord.com/api/webhooks/123456789012345678/" + strings.Repeat("aB3", 20), strings.Repeat("aB3", 20)},
		"digitalocean":        {"dop_" + "v1_" + strings.Repeat("0a1b2c3d", 8), strings.Repeat("0a1b2c3d", 8)},
		"jira, second of two": {"with ATATT3" + strings.Repeat("aB3", 62), strings.Repeat("aB3", 62)},
		"teams hook":          {"to https://a.webhook.office.com/webhookb2/" + uuid + "@" + uuid + "/IncomingWebhook/" + strings.Repeat("9f86d081", 4) + "/" + uuid, strings.Repeat("9f86d081", 4)},
		"a wide colon":        {"token：abcd1234efgh", "abcd1234efgh"},
		"a wide equals sign":  {"WANDB_API_KEY＝abcd1234efgh", "abcd1234efgh"},
		"a wide header":       {"Authorization： Bearer abcdefgh12345678", "abcdefgh12345678"},
		"Chinese":             {"数据库密码：hunter22x，请勿外传", "hunter22x"},
		"Chinese, by a verb":  {"登录口令是 hunter22x。", "hunter22x"},
		"Chinese, by both":    {"登录口令为：hunter22x", "hunter22x"},
		"Chinese, quoted":     {"访问令牌: “hunter22x”", "hunter22x"},
		"a long s in a name":  {"pa\u017fsword=hunter22", "hunter22"},
		"a long s elsewhere":  {"pa\u017fs with ATATT3" + strings.Repeat("aB3", 62), strings.Repeat("aB3", 62)},
		"azure, a short word": {"of the app: abc8Q~" + strings.Repeat("aB3", 11), strings.Repeat("aB3", 11)},
		"nvidia registry key": {"nvapi-" + strings.Repeat("xY9", 8), strings.Repeat("xY9", 8)},
		"a quoted phrase":     {`password = "correct horse battery"`, "horse battery"},
		"a sentence":          {`password: 'it is a long phrase'`, "a long phrase"},
		"a phrase in json":    {`{"body":"{\"password\":\"correct horse\"}"}`, "horse"},
		"a quote in a phrase": {`"password": "say \"hi\" twice"`, "twice"},
		"a quote left open":   {`password = "correct horse batt`, "horse batt"},
		"quoted as a whole":   {`docker run -e "DB_PASSWORD=correct horse" img`, "horse"},
		"signs in a password": {"DB_PASSWORD=ab;cd&ef)gh,ij user=me", "gh,ij"},
		"a numeric password":  {"password=12345678", "12345678"},
		"a numeric secret":    {"client_secret: 87654321", "87654321"},
		"eod in a name":       {"seodtoken=zx81kq8zt3vlw9", "zx81kq8zt3vlw9"},
		"csh":                 {"setenv HF_TOKEN hunters", "hunters"},
		"a Dockerfile":        {"ENV HF_TOKEN zx81kq8zt3vlw9", "zx81kq8zt3vlw9"},
		"mysql":               {"mysql -u root -phunter22 ops", "hunter22"},
		"mysql, apart":        {"mysql -u root -p hunter22", "hunter22"},
		"mysql, quoted":       {"mysqldump -p'hunter 22' ops", "hunter 22"},
		"redis":               {"redis-cli -h cache -a hunter22 ping", "hunter22"},
		"ipmi":                {"ipmitool -H bmc1 -U ADMIN -P hunter22 power status", "hunter22"},
		"piped":               {"echo hunter22 | docker login --password-stdin", "hunter22"},
		"docker's config":     {`{"auths": {"nvcr.io": {"auth": "dXNlcjpwYXNzd29yZA=="}}}`, "dXNlcjpwYXNzd29yZA=="},
		"wandb's login":       {"wandb login --relogin " + hex, hex},
		"Megatron's listing":  {"  wandb_api_key ................. zx81kq8zt3vlw9", "zx81kq8zt3vlw9"},
		"a kube config":       {"    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURQ==", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURQ=="},
		"pgpass":              {"db.example.org:5432:ops:bot:hunter22", "hunter22"},
		"a cookie":            {"Cookie: session=zx81kq8zt3vlw9; theme=dark", "zx81kq8zt3vlw9"},
		"xml":                 {"<password>hunter22</password>", "hunter22"},
		"a default":           {"${DB_PASSWORD:-hunter22}", "hunter22"},
		"a typed default":     {`hf_token: str = "zx81kq8zt3vlw9"`, "zx81kq8zt3vlw9"},
		"a table":             {"| HF_TOKEN | zx81kq8zt3vlw9 |", "zx81kq8zt3vlw9"},
		"at in a password":    {"mongodb://bot:p@ss0rd@db/ops", "ss0rd"},
		"a key in a setting":  {"PRIVATE_KEY=\"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nxyz==\n-----END RSA PRIVATE KEY-----\"", "xyz=="},
		"two words":           {"API key: zx81kq8zt3vlw9", "zx81kq8zt3vlw9"},
		"name and value":      {`{"name": "DB_PASSWORD", "value": "hunter22"}`, "hunter22"},
		"name, then value":    {"- name: HF_TOKEN\n  value: zx81kq8zt3vlw9", "zx81kq8zt3vlw9"},
		"set to":              {"HF_TOKEN is set to zx81kq8zt3vlw9", "zx81kq8zt3vlw9"},
		"set to, in Chinese":  {"把密码设为 hunter22x", "hunter22x"},
		"compared":            {`if password != "hunter22":`, "hunter22"},
		"almost a token":      {"SLACK_BOT_TOKEN=zx81kq8zt3vlw9kq…", "zx81kq8zt3vlw9"},
	} {
		t.Run(name, func(t *testing.T) {
			got := redact.Text(s.text)
			require.NotContains(t, got, s.secret)
			require.Contains(t, got, redact.Mask)
			require.Equal(t, got, redact.Text(got), "masking twice changes nothing")
		})
	}
}

// The text around a secret stays.
func TestOnlyTheSecretIsMasked(t *testing.T) {
	for text, secret := range map[string]string{
		`{"key": "%s", "then": 1}`:        "ATATT3" + strings.Repeat("aB3", 62),
		`of "%s"; and more`:               "abc8Q~" + strings.Repeat("aB3", 11),
		`two: '%[1]s' and '%[1]s' and on`: "hvs." + strings.Repeat("aB3", 32),
		`"WANDB_API_KEY=%s is set twice"`: "hunter2x9Kq1",
		`'--api-key=%s must be given'`:    "zk29dk20dkQ",
	} {
		require.Equal(t, fmt.Sprintf(text, redact.Mask), redact.Text(fmt.Sprintf(text, secret)))
	}
}

func TestOrdinaryTextStays(t *testing.T) {
	for _, s := range []string{
		"commit d98e8a64" + strings.Repeat("0", 32) + " of Megatron-LM",
		"tokens per second per GPU: 4123.5",
		"git clone https://me:<token>@git.example.org/m.git",
		"--tokenizer-type GPT2BPETokenizer --max-tokens-to-oom 12000",
		"  num_tokens .......................... 1024",
		"token: None",
		"enroot-mount: failed to mount /etc/passwd: image is read-only",
		"cat: /run/secrets/token: permission denied",
		"PWD=/lustre/me/Megatron-LM OLDPWD=/home/me",
		"ssh login -p 2222 host; docker ps -p 1234",
		`num_tokens["train_tokens"] = count`,
		`curl -u me:$PASS -U "$USER:$PASS" --user-agent a:bcdef https://host:8443/a`,
		"query_key value_key=attention cross_attention.linear_kv",
		"ssh://git@host/repo and https://someone@host",
		"moe_token_dispatcher_type ....... alltoall",
		`print("token", "changed")`,
		`tokenizer.add("pad_token", "<|endoftext|>")`,
		"密码：不能为空，请重新输入",
		"令牌是否过期？密钥为 2048 位，口令: 长度不足",
		"HF_TOKEN：用于下载权重的令牌",
		"token：4096，显存：80GiB",
		"token_file: /path/to/file, password_file=~/db",
		"SLACK_BOT_TOKEN=xoxb-… HF_TOKEN=hf_... API_KEY=your_key_here TOKEN=${TOKEN:?}",
		"--tiktoken-pattern v2 --eod-mask-loss --calculate-per-token-loss must be given",
		"-v /etc/passwd:/etc/passwd:ro",
		"machine nvcr.io login $oauthtoken password <password>; machine a login b password KEY",
		`"eos_token": "<|eot_id|>", "prompt_tokens": 1024, {"token": 128009, "logprob": -0.5}`,
		`password=getpass.getpass(), api_key=args.api_key, token=os.environ["HF_TOKEN"], secret=secret`,
		`{"token": "the token of the bot", "password": "must be at least 8 characters"}`,
		"a secret: mode 600; Slurm's credential: munge does not run; 凭证:munge 未运行",
		"secrets.py:1234: DeprecationWarning; private key: 4096 bits",
		"mysql -h db -P 3306 -p; redis-cli -a; unzip -p a.zip vocab.json",
		"Use `wandb login --relogin` to force relogin; wandb login and then run",
		"cache key: layer12_head3_block77, key: decoder.layers.0.mlp.linear_fc1.weight",
		"Unable to unpack credential: Zero Bytes were transmitted; decoded token: 'world'",
		"总 token:7-8B；密钥文件：/etc/munge/munge.key；token 数：123456",
		"mysqld -p 3306:3306; apptainer registry login --username '$oauthtoken' docker://nvcr.io",
		"JWT: `scontrol token lifespan=60`",
		"[rank3]: RuntimeError: The size of tensor a (132) must match the size of tensor b (131)",
	} {
		require.Equal(t, s, redact.Text(s))
	}
}

func TestConfiguredValuesAreMasked(t *testing.T) {
	require.Equal(t, "it is "+redact.Mask+"!", redact.Values("plainword", "")("it is plainword!"))
	require.Equal(t, "it is "+redact.Mask+"!", redact.Values("word")("it is word!"))
	require.Equal(t, "it is on!", redact.Values("on!")("it is on!"), "too short to be one")
}

func TestCleanTakesAwayWhatActs(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31mred\x1b[0m":                       "red",
		"a\x1b]8;;http://x\x07link\x1b]8;;\x1b\\b": "alinkb",
		"\x1b]52;c;aGk=\x07":                       "",
		"10%\r50%\r100%\nnext":                     "100%\nnext",
		"line\r\n":                                 "line\n",
		"\x07":                                     "",
		"\x00\x1b":                                 "",
		"nul\x00 and \u202eright to left\u2066":    "nul and right to left",
		"bad \xff byte":                            "bad \ufffd byte",
		// The first and the last character of each kind are removed, their neighbours
		// stay.
		"\x1f\x20~\x7f\u009f\u00a0": " ~\u00a0",
		"\u061b\u061c\u200a\u200b\u200f\u2010\u2029\u202a\u202e\u202f\u205f\u2060\u206f\u2070": "\u061b\u200a\u2010\u202f\u205f\u2070",
		"\ufefe\ufeff\uff00\U000dffff\U000e0000\U000e007f\U000e0080":                           "\ufefe\uff00\U000dffff",
		"a\u00adb\u2028c\u2029d\u180ee\u3164f\ufe0fg\U000e0100h\U000e01efi\ufff9":              "abcdefghi",
		"c1 \u009b31m":       "c1 31m",
		"中文 stays, tab\ttoo": "中文 stays, tab\ttoo",
	} {
		require.Equal(t, want, redact.Clean(in))
	}
}

func FuzzCleanIsStable(f *testing.F) {
	f.Add("\x1b\x1b[[31m\r\x9b")
	f.Fuzz(func(t *testing.T, s string) {
		once := redact.Clean(s)
		require.Equal(t, once, redact.Clean(once))
		require.False(t, strings.ContainsAny(once, "\x1b\x07\x00\r"))
	})
}

func TestAKeyOverManyLinesIsMaskedLineByLine(t *testing.T) {
	body := []string{"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "short+tail=="}
	var k redact.Stream
	require.Equal(t, "before", k.Line("before"))
	require.Contains(t, k.Line("-----BEGIN RSA PRIVATE KEY-----"), redact.Mask)
	for _, l := range body {
		require.Equal(t, redact.Mask, k.Line(l))
	}
	require.Equal(t, redact.Mask, k.Line("-----END RSA PRIVATE KEY-----"))
	require.Equal(t, "after", k.Line("after"))
	require.NotContains(t, redact.Text("[rank3]: "+body[0]), "MIIEvQ", "also where its beginning was not read")
	for _, hash := range []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", strings.Repeat("=", 60), strings.Repeat("-", 70),
		"E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855", strings.Repeat("zx81kq8z", 7), strings.Repeat("ThisIsOneLongWord", 3),
	} {
		require.Equal(t, hash, redact.Text(hash))
	}
}

// The lines of a key are masked each by itself, as a script may hold it, and no other line is.
func TestLinesOfAKeyInAScriptAreMasked(t *testing.T) {
	const key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
	script := "cat <<-END\n\t-----BEGIN RSA PRIVATE KEY-----\n\t" + key + "\n  " + key + "\n" + key + "\n\t-----END RSA PRIVATE KEY-----\nEND\n\tsrun train"
	said := redact.Lines(script)
	require.NotContains(t, said, key[:20])
	require.Contains(t, said, "END\n\tsrun train")
}

// Text that only looks like the start of a key does not hide the lines after it, and a
// key without an end does not hide the rest of the log.
func TestLinesAfterWhatIsNoKeyStay(t *testing.T) {
	const next = "iteration 7"
	for _, line := range []string{
		"-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "the PRIVATE KEY of the server is missing", "-----END RSA PRIVATE KEY-----",
		`key: "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"`,
	} {
		var k redact.Stream
		k.Line(line)
		require.Equal(t, next, k.Line(next), line)
	}
	var k redact.Stream
	k.Line("-----BEGIN RSA PRIVATE KEY-----")
	for range 200 {
		require.Equal(t, redact.Mask, k.Line(next))
	}
	require.Equal(t, next, k.Line(next))
}

func TestNamesThatHoldSecrets(t *testing.T) {
	for name, secret := range map[string]bool{
		"WANDB_API_KEY": true, "MYSQL_PASS": true, "DB_PWD": true, "ENCRYPTION_KEY": true, "my_password": true, "SLURM_JWT": true,
		"HF_TOKEN": true, "SENTRY_DSN": true, "PWD": false, "TOKENIZER_MODEL": false, "KEY_SIZE": false, "NCCL_IB_HCA": false, "PASS": false,
		"DISCORD_WEBHOOK": true, "credentials": true, "seodtoken": true, "EOS_TOKEN": false, "num_tokens": false, "SLACK_BOT_TOKEN_FILE": false, "secretary": false,
	} {
		require.Equal(t, secret, redact.SecretName(name), name)
	}
}
