package diagnose_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Launchers that leave after the one that kept their store warn that they could not take it down, behind whatever prefix.
func TestALaunchersWarningAfterTheEnd(t *testing.T) {
	const (
		warning = "WARNING:torch.distributed.elastic.rendezvous.dynamic_rendezvous:The node 'n2_4711_0' has failed to shutdown the rendezvous 'r7' " +
			"due to an error of type RendezvousConnectionError.\n"
		iterations = "gpu1:  iteration        1/       2 | elapsed time per iteration (ms): 193.5 | lm loss: 3.0E-01 |\n" +
			"gpu1:  iteration        2/       2 | elapsed time per iteration (ms): 193.5 | lm loss: 3.0E-01 |\n"
	)
	require.Equal(t, outcome.Success, diagnosetest.Text(t, iterations+"gpu1: [after training is done]\ngpu2: "+warning).Class)
	require.Equal(t, outcome.UserException, diagnosetest.Text(t, iterations+diagnosetest.Raised("KeyError: 'a'")+"gpu2: "+warning).Class)
	require.NotEqual(t, outcome.Success, diagnosetest.Text(t, iterations+"gpu2: "+warning).Class, "without the words of an end it is none")
}
