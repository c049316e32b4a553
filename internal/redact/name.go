package redact

import (
	"slices"
	"strings"
	"unicode"
)

// A kind is what a name says of its value.
type kind uint8

const (
	ordinary kind = iota // not a secret
	ofModels             // the token of a tokenizer or a model, and very seldom a secret
	likely               // a secret if the value looks like a key
	token                // a secret or, if it is a number, a count
	secret               // a secret
	password             // a secret that may be a number
)

// stems are the parts of names that mean secrets. A name is read without its separators:
// api_key, api-key and apiKey are one. The first match counts.
var stems = []struct {
	kind kind
	list []string
}{
	{password, []string{"password", "passwd", "passphrase"}},
	{secret, []string{
		"secret", "apikey", "accesskey", "privatekey", "authkey", "accountkey", "encryptionkey", "signingkey", "credential", "keydata",
		"masterkey", "sshkey", "deploykey", "licensekey", "subscriptionkey", "sessionkey", "clientkey", "authorization",
		"wandbkey", "swanlabkey", "cometkey", "openaikey", "ngckey", "hfkey", "awskey",
	}},
	{token, []string{"token"}},
	{likely, []string{"webhook"}},
}

// wholeWords are the last words of names that mean secrets, although they are parts of ordinary
// words, too.
var wholeWords = map[string]kind{
	"jwt": secret, "dbpass": secret,
	"auth": likely, "pass": likely, "pwd": likely, "pat": likely, "creds": likely, "salt": likely, "dsn": likely, "sessionid": likely,
}

// shouted are the last words of environment variables that hold secrets. In lower case they
// are parts of ordinary words: query_key, pass, sort_key.
var shouted = []string{"pass", "pwd", "key", "keys", "creds", "pat", "dsn", "salt", "secret", "secrets"}

// aboutSecrets are the last words of names that are about a secret and do not hold it.
var aboutSecrets = words(`file files path paths dir folder url uri name names type kind ttl expiry expires expiration expired age length len size min max
	count policy hint field prompt stdin limit pattern format regex required enabled lifetime usage rotation manager provider helper store
	py pyc go json jsonl yaml yml toml txt md sh log conf cfg ini bin pt`)

// ofTokenizers are the words beside token in what trainings count and configure.
var ofTokenizers = words(`eod eos bos pad unk cls sep mask special image video audio vision sample num max min avg mean total per type id ids idx index length
	len count counts dispatcher drop dropped dropping moe loss embed embedding embeddings prob probs window budget level text input output prompt
	completion new next prev last begin end stop shift mixing rate throughput parallel permute unpermute expert position`)

// notSecrets are words that only contain a stem.
var notSecrets = strings.NewReplacer("tiktoken", "", "detokeniz", "", "tokeniz", "", "tokenis", "", "secretary", "", "publickey", "")

// chineseNames are the Chinese words for secrets, in which words such as 密码 have no separators.
var chineseNames = map[string]kind{
	"密码": password, "口令": password, "密钥": secret, "秘钥": secret, "私钥": secret, "令牌": token, "凭据": secret, "凭证": secret,
}

// nameWords are the words in lower case of which a name that is not ordinary contains one.
var nameWords = func() (all []string) {
	all = []string{
		"secret", "token", "passw", "passphrase", "key", "credential", "authorization", "webhook", "jwt", "auth", "pass", "pwd", "pat", "creds",
		"salt", "dsn", "sessionid",
	}
	for name := range chineseNames {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}()

func words(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// SecretName reports whether a setting of that name, such as an environment variable,
// holds a secret: its value is never kept or shown, whatever it looks like.
func SecretName(name string) bool {
	return kindOf(name) >= likely && wholeWords[strings.ToLower(name)] != likely // PWD is a folder
}

// kindOf returns what a name means.
func kindOf(name string) kind {
	if k, chinese := chineseNames[name]; chinese {
		return k
	}
	parts := wordsOf(name)
	if len(parts) == 0 || aboutSecrets[parts[len(parts)-1]] {
		return ordinary
	}
	last, flat := parts[len(parts)-1], notSecrets.Replace(strings.Join(parts, ""))
	for _, s := range stems {
		for _, stem := range s.list {
			if !strings.Contains(flat, stem) {
				continue
			}
			switch {
			case s.kind == token && (strings.Contains(flat, "tokens") || slices.ContainsFunc(parts, func(w string) bool { return ofTokenizers[w] })):
				return ofModels
			case last == "secrets" || last == "credentials": // several, which have names of their own
				return likely
			}
			return s.kind
		}
	}
	if len(parts) > 1 && slices.Contains(shouted, last) && isShouted(name) {
		return secret
	}
	return wholeWords[last]
}

// wordsOf splits a name into its words, in lower case: at signs and before capitals.
func wordsOf(name string) (list []string) {
	from, before := 0, rune(0)
	add := func(to int) {
		if w := strings.Trim(name[from:to], "._- "); w != "" {
			list = append(list, strings.ToLower(strings.ToUpper(w))) // through capitals, for the long s
		}
		from = to
	}
	for i, r := range name {
		if strings.ContainsRune("._- ", r) || unicode.IsUpper(r) && unicode.IsLower(before) {
			add(i)
		}
		before = r
	}
	add(len(name))
	return list
}

// isShouted reports whether a name is in capitals, as those of environment variables.
func isShouted(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' })
}
