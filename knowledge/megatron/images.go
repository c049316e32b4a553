package megatron

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// An Image is a container image and the versions of what is in it; empty where
// no document says.
type Image struct {
	Repository, Tag                   string
	Megatron, TransformerEngine, CUDA string
	// Source is the document that says so.
	Source string
}

// Name is how people write the image.
func (i Image) Name() string { return i.Repository + ":" + i.Tag }

//go:embed images.csv
var imagesFile string

var images = sync.OnceValue(func() []Image {
	var all []Image
	for _, line := range strings.Split(strings.TrimSpace(imagesFile), "\n")[1:] {
		f := strings.SplitN(line, ",", 6)
		all = append(all, Image{f[0], f[1], f[2], f[3], f[4], f[5]})
	}
	return all
})

// plainImage writes an image's name as path elements, whatever a registry or a
// saved file puts between them.
func plainImage(image string) string {
	name := strings.NewReplacer("#", "/", "+", "/", ":", "/", "_", "/").Replace(strings.ToLower(image))
	for _, end := range []string{".sqsh", ".sif"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// LookupImage returns what is known of an image, by the registry's name for it
// (nvcr.io/nvidia/nemo:26.04, nvcr.io#nvidia/nemo:26.04) or by the name of the
// file that it was saved to (nemo_26.04.sqsh, nvidia+nemo+26.04.sqsh).
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

// MinimalDriver is the oldest branch of NVIDIA's driver that runs what was built
// with a CUDA, by its major version alone; 0 where that is not known.
func MinimalDriver(cuda string) int {
	major, _, _ := strings.Cut(cuda, ".")
	return map[string]int{"11": 450, "12": 525, "13": 580}[major]
}

// nvidiaImage is an image of NVIDIA's that is named after its month.
var nvidiaImage = lazy.New(`(?:^|/)(pytorch|nemo)[/-]([0-9]{2})\.([0-9]{2})(?:[.-].*)?$`)

// A Month counts months since the year 2000.
type Month int

// MonthOf reads 25.02, as NVIDIA numbers its images.
func MonthOf(yearMonth string) Month {
	y, m, _ := strings.Cut(yearMonth, ".")
	year, _ := strconv.Atoi(y)
	month, _ := strconv.Atoi(m)
	return Month(12*year + month - 1)
}

// String writes the month as 2025-02.
func (m Month) String() string { return fmt.Sprintf("20%02d-%02d", m/12, m%12+1) }

// ImageMonth is the month that an image of NVIDIA's is of: what was released
// later cannot be in it.
func ImageMonth(image string) (Month, bool) {
	found := nvidiaImage.FindStringSubmatch(plainImage(image))
	if found == nil {
		return 0, false
	}
	return MonthOf(found[2] + "." + found[3]), true
}
