package diagnose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A program may tell its loss once per epoch, in words of its own.
func TestALossThatIsNeverANumber(t *testing.T) {
	for log, never := range map[string]bool{
		"Fold 1\nMean loss: nan\nFold 2\nMean loss: nan\n":                                                 true,
		"dev acc: 0.27, loss: nan, seen: 40\n  eval_loss = nan\n":                                          true,
		"Fold 1\nMean loss: nan\n":                                                                         false,
		"loading the model\ntest loss: nan, accuracy: 0.1\nEvaluation finished.\n":                         true,
		"loading the model\n{'eval_loss': nan, 'eval_runtime': 3.1}\nSaved.\n":                             true,
		"step 1/2 loss nan\nstep 2/2 loss nan\nDone.\n":                                                    true,
		"val_loss: nan\nstep 1 loss 0.5\nstep 2 loss 0.4\nDone.\n":                                         false,
		"epoch 1 perplexity 12.3\nepoch 2 perplexity 11.2\nval_loss: nan\nDone.\n":                         false,
		"Iter 10 | nll 3.2\nIter 20 | nll 3.0\nval_loss nan\nDone.\n":                                      false,
		"train_acc=0.71\ntrain_acc=0.75\nval_loss=nan\nDone.\n":                                            false,
		"skip if loss nan\nskip if loss nan\nDone.\n":                                                      false,
		"--stop-on-loss nan\n--stop-on-loss nan\nDone.\n":                                                  false,
		"Fold 1\nMean loss: 0.4\nval loss: nan\nFold 2\nMean loss: 0.3\nval loss: nan\n":                   false,
		"{'loss': 0.4}\n{'eval_loss': nan}\n{'eval_loss': nan}\n{'eval_loss': nan}\n":                      false,
		"Fold 1\nMean loss: nan\nFold 2\nMean loss: nan\n" + diagnosetest.Raised("KeyError: 7"):            false,
		"loss: 0.4\nacc: 0.5\nloss: 0.3\nloss: nan\nacc: 0.1\nloss: nan\nacc: 0.1\nloss: nan\nacc: 0.1\n":  true,
		"loss: 0.4\nloss: nan\nloss: nan\nloss: nan\nloss: 0.3\nDone.\n":                                   false,
		"loss: 0.4\nloss: nan\nloss: nan\nDone.\n":                                                         false,
		"loss: 0.4\nloss: 0.3\ntotal 0.4 kl_loss: nan\ntotal 0.3 kl_loss: nan\ntotal 0.2 kl_loss: nan\n":   false,
		"loss: 0.4\nloss: 0.3\ndomain a loss: nan\ndomain b loss: nan\ndomain c loss: nan\n":               false,
		"train loss: 0.4\naux_loss: nan\ntrain loss: 0.3\naux_loss: nan\ntrain loss: 0.2\naux_loss: nan\n": false,
	} {
		t.Run("", func(t *testing.T) { require.Equal(t, never, diagnosetest.Old(t, log).Class == outcome.NaNLoss, log) })
	}
}
