package megatron

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// An Image is a container image with the versions of the software in it. A version
// is empty where no document states it.
type Image struct {
	Repository, Tag                   string
	Megatron, TransformerEngine, CUDA string
	// Source is the document that states the versions.
	Source string
}

// Name returns repository and tag, separated by a colon.
func (i Image) Name() string { return i.Repository + ":" + i.Tag }

//go:embed images.csv
var imagesFile string

var images = sync.OnceValue(func() []Image {
	var all []Image
	for _, line := range strings.Split(strings.TrimSpace(imagesFile), "\n")[1:] { // after the header
		f := strings.SplitN(line, ",", 6)
		all = append(all, Image{f[0], f[1], f[2], f[3], f[4], f[5]})
	}
	return all
})

// plainImage returns an image's name in lower case, with / in place of all
// separators that registries and saved files use, and without the file's ending.
func plainImage(image string) string {
	name := strings.NewReplacer("#", "/", "+", "/", ":", "/", "_", "/").Replace(strings.ToLower(image))
	for _, end := range []string{".sqsh", ".sif"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// LookupImage returns a known image by its name in a registry
// (nvcr.io/nvidia/nemo:26.04, nvcr.io#nvidia/nemo:26.04) or by the name of a file
// saved from it (nemo_26.04.sqsh, nvidia+nemo+26.04.sqsh).
func LookupImage(image string) (Image, bool) {
	name := plainImage(image)
	for _, i := range images() {
		short := i.Repository[strings.LastIndex(i.Repository, "/")+1:]
		for _, separator := range []string{"/", "-"} {
			if want := short + separator + i.Tag; name == want || strings.HasSuffix(name, "/"+want) || strings.Contains(name, "/"+want+".") {
				return i, true
			}
		}
	}
	return Image{}, false
}

// MinimalDriver returns the oldest branch of NVIDIA's driver that runs programs
// built with a CUDA version. Only the major version counts. The result is 0 where
// the version is not known.
func MinimalDriver(cuda string) int {
	major, _, _ := strings.Cut(cuda, ".")
	return map[string]int{"11": 450, "12": 525, "13": 580}[major]
}

// nvidiaImage matches the NVIDIA images whose tags begin with year and month.
var nvidiaImage = lazy.New(`(?:^|/)(pytorch|nemo)[/-]([0-9]{2})\.([0-9]{2})(?:[.-].*)?$`)

// A Month counts months since the year 2000.
type Month int

// MonthOf parses the tag of an NVIDIA image, such as 25.02.
func MonthOf(yearMonth string) Month {
	y, m, _ := strings.Cut(yearMonth, ".")
	year, _ := strconv.Atoi(y)
	month, _ := strconv.Atoi(m)
	return Month(12*year + month - 1)
}

// String returns the month in the form 2025-02.
func (m Month) String() string { return fmt.Sprintf("20%02d-%02d", m/12, m%12+1) }

// ImageMonth returns the month in the tag of an NVIDIA image. The image cannot
// contain software released later.
func ImageMonth(image string) (Month, bool) {
	found := nvidiaImage.FindStringSubmatch(plainImage(image))
	if found == nil {
		return 0, false
	}
	return MonthOf(found[2] + "." + found[3]), true
}
