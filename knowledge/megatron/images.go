package megatron

import (
	_ "embed"
	"strings"
	"sync"
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

// LookupImage returns what is known of an image, by the registry's name for it
// (nvcr.io/nvidia/nemo:26.04, nvcr.io#nvidia/nemo:26.04) or by the name of the
// file that it was saved to (nemo_26.04.sqsh, nvidia+nemo+26.04.sqsh).
func LookupImage(image string) (Image, bool) {
	name := strings.NewReplacer("#", "/", "+", "/", ":", "/", "_", "/").Replace(strings.ToLower(image))
	for _, end := range []string{".sqsh", ".sif"} {
		name = strings.TrimSuffix(name, end)
	}
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
