package python_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A compiled module could not be imported, and the program went on until it needed the module.
func TestACompiledModuleIsNotDefined(t *testing.T) {
	raised := func(source, name string) string {
		return "Traceback (most recent call last):\n  File \"/w/ops.py\", line 8, in forward\n    " + source + "\n" +
			"          ^^^^^^^^^^\nNameError: name '" + name + "' is not defined\n"
	}
	for log, class := range map[string]string{
		raised("return fused_layer_norm_cuda.forward(x)", "fused_layer_norm_cuda"): outcome.ExtensionABI,
		raised("return _C.ms_deform_attn_forward(v)", "_C"):                        outcome.ExtensionABI,
		raised("return quant_cuda.vecquant4matmul(x, w, y)", "quant_cuda"):         outcome.ExtensionABI,
		raised("y = images_cuda.to(device)", "images_cuda"):                        outcome.UserException,
		raised("y = images_cuda.view(n, -1)", "images_cuda"):                       outcome.UserException,
		raised("if file_ext.lower() in known:", "file_ext"):                        outcome.UserException,
		raised("print(labels_cuda.shape)", "labels_cuda"):                          outcome.UserException,
		raised("if use_cuda:", "use_cuda"):                                         outcome.UserException,
		raised("y = lossfn.apply(x)", "lossfn"):                                    outcome.UserException,
		raised("y = f(fused_cuda)", "fused_cuda"):                                  outcome.UserException,
	} {
		require.Equal(t, class, diagnosetest.Text(t, log).Class, log)
	}
}
