package lint

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Lint reports a literal secret at its line, in whatever form it is given, and does not
// repeat the secret. It does not report values that only have the name of a secret.
func TestSecretsInAScript(t *testing.T) {
	const (
		hex   = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"
		plain = "Kq8zT3vLw9Xr2Yb7Nd5M" // twenty letters and digits
		face  = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz"
	)
	for line, what := range map[string]string{ // a part of the message; empty: no finding
		// Text that is a secret in any context.
		"huggingface-cli download x --token " + face:               "hf_A",
		"# my old one was " + face:                                 "hf_A",
		"curl -H 'Authorization: Bearer Zx81Kq8zT3vLw9Xr2Yb7Nd5M'": "Bear",
		"export K=AKIAQ2W3E4R5T6Y7U8I9":                            "AKIA",
		"echo sk-Kq8zT3vLw9Xr2Yb7Nd5M":                             "sk-K",
		"export HF_TOKEN=hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxx":          "",
		"export HF_TOKEN=hf_short":                                 "",
		"git clone https://me:Zx81Kq8z@git.example.org/m.git":      "://…:…@",
		"git clone https://me:abc@git.example.org/m.git":           "", // too short for a password
		"git clone https://me:$TOKEN@git.example.org/m.git":        "",
		"git clone https://me:<token>@git.example.org/m.git":       "",
		"git clone https://git.example.org:8443/m.git":             "",
		// Variables by their names.
		"export WANDB_API_KEY=" + hex:                  "WANDB_API_KEY",
		"WANDB_API_KEY=" + hex + " uv run a.py":        "WANDB_API_KEY",
		"export MY_TOKEN='" + plain + "'":              "MY_TOKEN",
		"export WANDB_API_KEY=$(cat ~/.secrets/wandb)": "",
		"export WANDB_API_KEY=$KEY":                    "",
		"export WANDB_API_KEY=your_key_here":           "",
		"export WANDB_API_KEY=":                        "",
		"export WANDB_API_KEY=/home/me/.wandb-key-01":  "",
		"export WANDB_API_KEY=~/keys/wandb-0123456789": "",
		"export HF_TOKEN=HF_TOKEN_OF_THE_TEAM":         "", // the name of another variable
		"export WANDB_NAME=" + plain:                   "",
		"export EOS_TOKEN=" + plain:                    "", // a token of the tokenizer
		"export MAX_TOKENS=123456789012":               "",
		"export API_KEY=12345678901":                   "", // a number
		"export API_KEY=123450678901":                  "API_KEY",
		"export API_KEY=abcdefg":                       "", // short and without digits
		"export API_KEY=abcd3fg":                       "",
		"export API_KEY=abcd3fgh":                      "API_KEY",
		"export API_KEY=abcdefghijklmnopqrs":           "",
		"export API_KEY=abcdefghijklmnopqrst":          "API_KEY",
		"export DB_PASSWORD=abcd":                      "DB_PASSWORD",
		"export DB_PASSWORD=abc":                       "",
		"export DB_PWD=abcd":                           "DB_PWD",
		"export AWS_SECRET_ACCESS_KEY=Kq8zT3vL/w9Xr2":  "AWS_SECRET_ACCESS_KEY",
		"export ACCESS_KEY=Kq8zT3vL/w9Xr2":             "", // looks like a path
		"export CLIENT_SECRET=Kq8zT3vL/w9Xr2":          "CLIENT_SECRET",
		// Options of commands.
		"python a.py --api-key " + plain:                      "api_key",
		"python a.py --api-key=" + plain:                      "api_key",
		"python a.py --api-key --verbose":                     "",
		"python a.py --api-key":                               "",
		"python a.py --eos-token " + plain:                    "",
		"docker run -e API_KEY=" + plain + " img":             "API_KEY",
		"docker run --env API_KEY=" + plain + " img":          "API_KEY",
		"docker run -e API_KEY img":                           "",
		"srun --export=ALL,API_KEY=" + plain + " uv run a.py": "API_KEY",
		"srun --export=ALL,API_KEY uv run a.py":               "",
		"sshpass -p abcd ssh host true":                       "sshpass -p",
		"sshpass -p $P ssh host true":                         "",
		"sshpass -f file ssh host true":                       "",
		"wandb login " + hex:                                  "wandb login",
		"wandb login --relogin " + hex:                        "wandb login",
		"wandb login":                                         "",
		"docker login -u me -p Zx81Kq8z reg.io":               "docker login",
		"docker login --password Zx81Kq8z reg.io":             "password",
		"docker login -u me --password-stdin":                 "",
		"git checkout " + hex:                                 "",
	} {
		var said []string
		for _, f := range Check("", []byte("#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=8 -t 60\ncd /w\n"+line+"\nuv run torchrun --standalone --nproc_per_node 8 a.py\n")) {
			if f.Rule == "secrets-in-script" {
				require.Equal(t, 4, f.Line, line)
				require.NotContains(t, f.Message, plain)
				require.NotContains(t, f.Message, hex)
				require.NotContains(t, f.Message, face)
				said = append(said, f.Message)
			}
		}
		if what == "" {
			assert.Empty(t, said, line)
			continue
		}
		assert.Contains(t, strings.Join(said, "\n"), what, line)
		assert.Less(t, len(said), 2, line)
	}
}
