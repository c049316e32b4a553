package job

import "strings"

// imageGuard is a short step before the launch that looks for the image: a file
// or a tag on every node, which only the node itself can tell, and a registry's
// name once, for the registry tells every node the same.
func (r *rendering) imageGuard() string {
	if !r.guarded() || !r.contained() {
		return ""
	}
	image := r.Container.Image
	scheme, name, remote := strings.Cut(image, "://")
	file := strings.HasPrefix(image, "/") || strings.HasPrefix(image, "./")
	switch r.Container.Runtime {
	case Docker:
		return r.onEveryNode("The image, on every node, pulled where it is missing.", `
  command -v docker >/dev/null || { `+says("warning", "docker is not on the PATH")+`; exit 0; }
  docker image inspect "$1" >/dev/null 2>&1 || docker pull --quiet "$1" >&2 || {
    `+says("stop", "image $1 is neither here nor can be pulled")+`; exit 3; }
`, image)
	case Pyxis:
		if !file && !remote {
			image = "docker://" + image // as pyxis itself takes it
		}
		if !file {
			// enroot 4 has it; what curl was answered stands in its last line.
			return atRegistry("enroot digest", `*"error code: "40[134]*`, image)
		}
	case Singularity, Apptainer:
		switch {
		case remote && (scheme == "docker" || scheme == "oras"):
			// Whose password skopeo has may differ from the runtime's, so that a
			// refusal is no proof.
			return atRegistry("skopeo inspect --raw", `*"manifest unknown"*|*"name unknown"*`, "docker://"+name)
		case remote:
			return "guard warning " + quote("image "+image+" is not looked for before the launch")
		}
	case Enroot:
		if !file && !strings.HasSuffix(image, ".sqsh") {
			return r.onEveryNode("The container, on every node: enroot starts files, and what enroot create made there.", `
  SAID=$(enroot list 2>/dev/null) || { `+says("warning", "enroot does not list its containers")+`; exit 0; }
  [[ -f $1 ]] || grep -qxFe "$1" <<<"$SAID" || {
    `+says("stop", "$1 is neither a file nor a container of enroot here; enroot import makes a file of a registry image")+`; exit 3; }
`, image)
		}
	}
	return `# The image file, on every node.
if [[ -e ` + quote(image) + ` ]]; then
  srun ` + r.everyNode() + ` bash -c '[[ -r $1 ]] || {
    ` + says("stop", "image $1 is on the first node and not here") + `; exit 3; }
  ' _ ` + quote(image) + `
else
  guard warning ` + quote("image "+image+" is not here") + `
fi`
}

// says is a guard's line from a node, for a shell that lacks the function guard.
func says(what, text string) string {
	return `echo "guard: ` + what + `: ${SLURMD_NODENAME:-$HOSTNAME}: ` + text + `" >&2`
}

// onEveryNode runs a look at the image on each node of the job.
func (r *rendering) onEveryNode(comment, look, image string) string {
	return "# " + comment + "\nsrun " + r.everyNode() + " bash -c '" + look + "' _ " + quote(image)
}

// atRegistry asks the image's registry once, from one node, for the manifest
// only: no layer is pulled. An answer that matches gone is proof.
func atRegistry(command, gone, image string) string {
	return `# The image, asked of its registry once; nothing is pulled.
srun --nodes=1 --ntasks=1 bash -o pipefail -c '
  SAID=$(timeout 60 ` + command + ` "$1" 2>&1 >/dev/null | tail -n 1) && exit
  case $SAID in
    ` + gone + `) ` + says("stop", "image $1 cannot be pulled: $SAID") + `; exit 3 ;;
    *) ` + says("warning", "not known whether image $1 can be pulled: ${SAID:-no answer in a minute}") + ` ;;
  esac
' _ ` + quote(image)
}
