package scan_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestAnEndWithABadStatusIsNoSuccess gives logs last words that have both: a word of an end, and a status.
func TestAnEndWithABadStatusIsNoSuccess(t *testing.T) {
	const trained = "step 8 loss 0.4\nTraining complete\n"
	for end, class := range map[string]string{
		"Training done (rc=0)\n":                         outcome.Success,
		"Training done (rc=2)\n":                         outcome.UnknownExit,
		"Run finished: status=4\n":                       outcome.UnknownExit,
		"Finished with return code 137\n":                outcome.UnknownExit,
		"Finished with return code 0\n":                  outcome.Success,
		"Job done with return code -9\n":                 outcome.UnknownExit,
		"Training completed with status code 2, sorry\n": outcome.UnknownExit,
		"Job finished at 9:15 with state FAILED\n":       outcome.UnknownExit,
		"Training finished with status 'ok'\n":           outcome.Success,
		"Training finished, upload status: 201\n":        outcome.Success, // HTTP's
		"Training complete. State: 12.5\n":               outcome.Success,
		"Training complete. Model state: 12 layers\n":    outcome.Success,
		"Training finished. Status: 2 files written\n":   outcome.Success,
		"Run finished with status 3 after 8 steps\n":     outcome.UnknownExit,
		"训练任务完成，退出码：3\n":                                 outcome.UnknownExit,
		"训练任务完成，退出码：0\n":                                 outcome.Success,

		trained + "rc=0\n":                        outcome.Success,
		trained + "EXIT_CODE=7\n":                 outcome.UnknownExit,
		trained + "[start.sh] return code: 143\n": outcome.UnknownExit,
		trained + "RC=1 RUN=a7\n":                 outcome.UnknownExit,
		trained + "rc: 5 nodes used\n":            outcome.Success,
		trained + "fit.py returned 1\n":           outcome.UnknownExit,
		trained + "fit.py returned 1 model\n":     outcome.Success,
		trained + "rc=1\nrc=0\n":                  outcome.Success, // of two programs, and the last one is the job's
		trained + "Job finished with status 3\n":  outcome.UnknownExit,

		trained + "Error: the report was not written\n":                      outcome.UnknownExit,
		trained + "Error: the report was not written\nIt is on the screen\n": outcome.Success,
		trained + "Error rate 3% on the test set\n":                          outcome.Success,
		trained + "Error bars are in errors.png\n":                           outcome.Success,
		trained + "Error rate: 0.03\n":                                       outcome.Success,

		`{"job": "fit-7", "status": "failed", "seconds": 12}` + "\n":               outcome.UnknownExit,
		"Fit finished: success=False\n":                                            outcome.UnknownExit,
		"Fit finished: success=True\n":                                             outcome.Success,
		"训练没有成功完成\n":                                                               outcome.UnknownExit,
		"Training was not fully completed\n":                                       outcome.UnknownExit,
		"No results were written\n":                                                outcome.UnknownExit,
		"0/5 runs succeeded\n":                                                     outcome.UnknownExit,
		"5/5 runs succeeded\n":                                                     outcome.Success,
		"Successful: 0, Failed: 5\n":                                               outcome.UnknownExit,
		"Successful: 5, Failed: 0\n":                                               outcome.Success,
		"Training finished without errors\n":                                       outcome.Success,
		"The run ended abnormally\n":                                               outcome.UnknownExit,
		"全部任务完成，其中 3 个失败\n":                                                        outcome.UnknownExit,
		"全部任务完成，没有失败\n":                                                            outcome.Success,
		"训练结束，但有错误\n":                                                              outcome.UnknownExit,
		"程序异常退出\n":                                                                 outcome.UnknownExit,
		"2024-03-01 10:11:12,345 - INFO - Finished with errors\n":                  outcome.UnknownExit,
		"0 of 5 runs failed\n\nreal\t1m2.0s\nuser\t1m\nsys\t0m1s\n":                outcome.Success,
		trained + "Training has not finished\n":                                    outcome.UnknownExit,
		trained + "All jobs failed!\n":                                             outcome.UnknownExit,
		"训练失败\n结束时间: 2024-01-01 12:00:00\n":                                        outcome.UnknownExit,
		trained + "退出码 7\n":                                                        outcome.UnknownExit,
		trained + "返回码: 0\n":                                                       outcome.Success,
		"Maximum number of steps reached\n":                                        outcome.Success,
		"Training ran to completion\n":                                             outcome.Success,
		"Training did not run to completion\n":                                     outcome.UnknownExit,
		diagnosetest.Rounds(12, "step {n} loss 2.{n}\n") + "Max retries reached\n": outcome.UnknownExit,
		diagnosetest.Rounds(12, "step {n} loss 2.{n}\n") + "Reached end of file\n": outcome.UnknownExit,

		trained + "2024-03-01 10:11:12,345 - INFO - Failed: fit-7\n":                                               outcome.UnknownExit,
		trained + "10 个任务失败\n":                                                                                     outcome.UnknownExit,
		trained + "2024-03-01 10:11:12.345 | INFO     | __main__:main:88 - Failed: fit-7\n":                        outcome.UnknownExit,
		trained + "I0101 12:00:00.123456 1234 fit.py:30] Failed: fit-7\n":                                          outcome.UnknownExit,
		trained + "INFO:root:Failed steps: [fit]\n":                                                                outcome.UnknownExit,
		trained + "INFO:root:Failed steps: []\n":                                                                   outcome.Success,
		"Pipeline finished. Failed steps: fit\n":                                                                   outcome.UnknownExit,
		trained + "2 of 3 runs failed\n":                                                                           outcome.UnknownExit,
		trained + "Training crashed\nJob ended at Fri Mar  1 10:11:12 UTC 2024\n":                                  outcome.UnknownExit,
		trained + "return code: 2\nJob ended at Fri Mar  1 10:11:12 UTC 2024\n":                                    outcome.UnknownExit,
		"Completed with 3 errors\nDone.\n":                                                                         outcome.UnknownExit,
		"Stopped training due to an error\nDone.\n":                                                                outcome.UnknownExit,
		trained + "Stopped training due to a plateau\nDone.\n":                                                     outcome.Success,
		trained + "Class names: pass, fail\n":                                                                      outcome.Success,
		trained + "This model predicts failure\n":                                                                  outcome.Success,
		trained + "INFO:root:Saved the plot of the time to failure\n":                                              outcome.Success,
		trained + "错误：找不到测试集 /data/test.json\n":                                                                    outcome.UnknownExit,
		trained + "错误：无\n":                                                                                         outcome.Success,
		trained + "2024/03/01 10:11:12 All runs failed\n":                                                          outcome.UnknownExit,
		"2024-03-01 10:00:00 UTC\n" + diagnosetest.Rounds(20, "Shard {n} is read\n") + "2024-03-01 10:11:12 UTC\n": outcome.Success,
		trained + "Training complete\n3 files could not be read\n":                                                 outcome.Success,
		trained + "Training complete. 3 samples could not be read\n":                                               outcome.Success,
		trained + "Training complete. Weights were not saved (--no-save)\n":                                        outcome.Success,
		trained + "Training complete\nsuccess: 0\n":                                                                outcome.Success,
		trained + "Training complete\nunfinished: 0\n":                                                             outcome.Success,
		trained + "Training complete\nSaved failure cases to failures.csv\n":                                       outcome.Success,
		trained + "Training complete\nCancelled 3 prefetch tasks\n":                                                outcome.Success,
		trained + "Training complete\nrm: cannot remove '/w/a': No such file\n":                                    outcome.Success,
		trained + "Training complete\nThe king could not sleep and cannot rest\n":                                  outcome.Success,
		trained + "Final result: error 0.0312\n":                                                                   outcome.Success,
		trained + "测试完成: 成功 488 个, 失败 12 个\n":                                                                      outcome.Success,
		trained + "检测完成，存在异常点 5 个\n":                                                                               outcome.Success,
		trained + "评估完成，失败案例已保存\n":                                                                                 outcome.Success,

		"Processing ./fast\n  Preparing metadata: finished with status 'error'\n":                                       outcome.UnknownExit,
		"  Installing what builds it: finished with status 'done'\n  Building it: finished with status 'error'\n":       outcome.UnknownExit,
		"Processing ./fast\n  Installing what builds it: finished with status 'done'\n":                                 outcome.UnknownExit,
		"  Building it: finished with status 'done'\nSuccessfully installed fast-1.0\n" + trained + "Saved the model\n": outcome.Success,
	} {
		r := diagnosetest.Old(t, "step 7 loss 0.5\n"+end)
		require.Equal(t, class, r.Class, "%s: %s", end, r.Why)
	}
}
