package job

import "strings"

// imageGuard returns a short step before the launch that looks for the image. It looks
// for a file or a local tag on every node, because each node may differ. It asks a
// registry only once, because the registry gives every node the same answer.
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
  command -v docker >/dev/null || { `+guardLine("warning", "docker is not on the PATH")+`; exit 0; }
  docker image inspect "$1" >/dev/null 2>&1 || docker pull --quiet "$1" >&2 || {
    `+guardLine("stop", "image $1 is neither here nor can be pulled")+`; exit 3; }
`, image)
	case Pyxis:
		if !file && !remote {
			image = "docker://" + image // pyxis reads the name in the same way
		}
		if !file {
			// enroot has the command digest since version 4. Its last line of output has
			// the HTTP status that curl received.
			return atRegistry("enroot digest", `*"error code: "40[134]*`, image)
		}
	case Singularity, Apptainer:
		switch {
		case remote && (scheme == "docker" || scheme == "oras"):
			// skopeo may log in with other credentials than the runtime, so a refusal
			// does not prove that the runtime cannot pull the image.
			return atRegistry("skopeo inspect --raw", `*"manifest unknown"*|*"name unknown"*`, "docker://"+name)
		case remote:
			return "guard warning " + quote("image "+image+" is not looked for before the launch")
		}
	case Enroot:
		if !file && !strings.HasSuffix(image, ".sqsh") {
			return r.onEveryNode("The container, on every node: enroot starts files, and what enroot create made there.", `
  SAID=$(enroot list 2>/dev/null) || { `+guardLine("warning", "enroot does not list its containers")+`; exit 0; }
  [[ -f $1 ]] || grep -qxFe "$1" <<<"$SAID" || {
    `+guardLine("stop", "$1 is neither a file nor a container of enroot here; enroot import makes a file of a registry image")+`; exit 3; }
`, image)
		}
	}
	return `# The image file, on every node.
if [[ -e ` + quote(image) + ` ]]; then
  srun ` + r.everyNode() + ` bash -c '[[ -r $1 ]] || {
    ` + guardLine("stop", "image $1 is on the first node and not here") + `; exit 3; }
  ' _ ` + quote(image) + `
else
  guard warning ` + quote("image "+image+" is not here") + `
fi`
}

// guardLine returns the command that prints a guard's message on a node, for a shell
// that does not have the function guard.
func guardLine(what, text string) string {
	return `echo "guard: ` + what + `: ${SLURMD_NODENAME:-$HOSTNAME}: ` + text + `" >&2`
}

// onEveryNode returns the step that runs the check look on each node of the job. The
// image is its $1.
func (r *rendering) onEveryNode(comment, look, image string) string {
	return "# " + comment + "\nsrun " + r.everyNode() + " bash -c '" + look + "' _ " + quote(image)
}

// atRegistry returns the step that asks the image's registry for the manifest, once
// and from one node. It pulls no layer. An answer that matches the shell pattern gone
// proves that the image does not exist.
func atRegistry(command, gone, image string) string {
	return `# The image, asked of its registry once; nothing is pulled.
srun --nodes=1 --ntasks=1 bash -o pipefail -c '
  SAID=$(timeout 60 ` + command + ` "$1" 2>&1 >/dev/null | tail -n 1) && exit
  case $SAID in
    ` + gone + `) ` + guardLine("stop", "image $1 cannot be pulled: $SAID") + `; exit 3 ;;
    *) ` + guardLine("warning", "not known whether image $1 can be pulled: ${SAID:-no answer in a minute}") + ` ;;
  esac
' _ ` + quote(image)
}
