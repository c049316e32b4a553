package compute_test

import "testing"

func TestRates(t *testing.T) {
	leads(t, map[string]string{
		"2T tokens at 800k tokens/s: how many days":                                             "28.94 days",
		"吞吐 120 万 token/s,训 3T token 要几天":                                                       "28.94 天",
		"1024 GPUs at 3000 tokens/s per GPU, 6T tokens, how long":                               "22.61 days",
		"7B, 64 GPUs, gbs 512, seq 4096, 10 s a step: TFLOPS per GPU":                           "About 137.63 TFLOP/s",
		"7B gbs 512 序列 4096,每步 10 秒,64 张 H100,MFU 多少":                                           "MFU 约 13.92 %",
		"how many steps fit in a day at 8 s per step":                                           "10800 iterations",
		"tokens trained in a day with gbs 256, seq 2048 and 4 s per iteration, how many tokens": "11324620800 tokens",
	})
}
