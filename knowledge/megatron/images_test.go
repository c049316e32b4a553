package megatron

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLookupImage(t *testing.T) {
	for image, core := range map[string]string{
		"nvcr.io/nvidia/nemo:26.06":                  "0.18.0",
		"nvcr.io/nvidia/nemo:26.04":                  "0.17.0",
		"nvcr.io#nvidia/nemo:26.04":                  "0.17.0",
		"docker://nvcr.io#nvidia/nemo:25.09":         "0.14.0",
		"nemo:25.11":                                 "0.15.0",
		"registry.example.org:5000/ai/nemo:26.02":    "0.16.0",
		"nvcr.io/nvidia/nemo:26.04.01":               "0.17.0",
		"nvcr.io/nvidia/nemo-rl:v0.5.0":              "0.16.0",
		"/images/nvidia+nemo+26.02.sqsh":             "0.16.0",
		"/images/nemo_26.04.sqsh":                    "0.17.0",
		"/images/nemo-26.04.sif":                     "0.17.0",
		"nvcr.io/nvidia/nemo:26.041":                 "",
		"nvcr.io/nvidia/pytorch:26.04-py3":           "",
		"registry.example.org/ai/mynemo:26.04":       "",
		"registry.example.org/ai/nemo-curator:26.04": "",
		"": "",
	} {
		i, ok := LookupImage(image)
		require.Equal(t, core != "", ok, image)
		require.Equal(t, core, i.Megatron, image)
	}
}

func TestMonthRoundTrip(t *testing.T) {
	for yearMonth, want := range map[string]string{"24.01": "2024-01", "25.02": "2025-02", "26.12": "2026-12"} {
		require.Equal(t, want, MonthOf(yearMonth).String())
	}
	require.Equal(t, Month(1), MonthOf("25.01")-MonthOf("24.12"))
}

func TestImagesNameTheirSource(t *testing.T) {
	for _, i := range images() {
		require.NotEmpty(t, i.Source, i.Name())
		if i.Megatron != "" {
			_, ok := ParseRelease(i.Megatron)
			require.True(t, ok, i.Name())
		}
	}
}

func TestMinimalDriver(t *testing.T) {
	for cuda, driver := range map[string]int{"13.1.0": 580, "13": 580, "12.9.1": 525, "11.8": 450, "10.2": 0, "": 0, "x": 0} {
		require.Equal(t, driver, MinimalDriver(cuda), cuda)
	}
	for _, i := range images() {
		require.Equal(t, i.CUDA == "", MinimalDriver(i.CUDA) == 0, i.Name())
	}
}
