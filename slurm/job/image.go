package job

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Step is one command of a procedure, and its purpose. A person types the command;
// this program never runs it.
type Step struct {
	Does    lang.Text
	Command string
}

// An Image selects the image that the commands of Images build.
type Image struct {
	// Variant is dev or lts; empty means dev.
	Variant string
	// Base is the text of docker/.ngc_version.dev or .lts; empty means that the
	// command reads that file.
	Base string
	// Worktree is the Megatron-LM checkout; empty means the current folder.
	Worktree string
	// Remote is the URL of the git remote whose registry has the images of CI; if it
	// is empty, Images gives no command that pulls one.
	Remote string
	// NoCache leaves out the mount of the host's uv cache.
	NoCache bool
}

// Images returns the commands that get Megatron's image, convert it to the files that
// Slurm's container runtimes start, and open a shell in it. The build stops at the
// stage main, because the next stage needs a secret that only NVIDIA's own CI has.
func Images(in Image) ([]Step, error) {
	in.Variant = cmp.Or(in.Variant, "dev")
	if in.Variant != "dev" && in.Variant != "lts" {
		return nil, &FieldError{Field: "variant", Value: in.Variant, Msg: phrase("is not a Megatron-LM image", "不是 Megatron-LM 的镜像"), Fix: phrase("dev or lts", "dev 或 lts")}
	}
	tree := "."
	if in.Worktree != "" {
		if why := checkAbsolute(in.Worktree); why != fine {
			return nil, &FieldError{Field: "worktree", Value: in.Worktree, Msg: why, Fix: phrase("give an absolute path", "请给出绝对路径")}
		}
		tree = quote(in.Worktree)
	}
	base := `"$(cat docker/.ngc_version.` + in.Variant + `)"`
	if b := strings.TrimSpace(in.Base); b != "" {
		if checkImage(b) != fine {
			return nil, &FieldError{Field: "base", Value: b, Msg: phrase("is not an image's name", "不是镜像名"), Fix: phrase("give the text of docker/.ngc_version.%s", "请给出 docker/.ngc_version.%s 的内容", in.Variant)}
		}
		base = quote(b)
	}
	tag := "megatron-lm:local"
	if in.Variant == "lts" {
		tag += "-lts"
	}
	file := strings.ReplaceAll(strings.ReplaceAll(tag, ":", "-"), "-local", "") + ".sqsh"
	var steps []Step
	add := func(en, zh, command string) {
		steps = append(steps, Step{lang.Text{EN: en, ZH: zh}, command})
	}
	if in.Remote != "" {
		host, err := registryHost(in.Remote)
		if err != nil {
			return nil, err
		}
		add("pull what CI built, from the registry beside the git remote", "从 git 远端所在的镜像仓库拉取 CI 构建的镜像",
			"docker pull "+quote(host+"/adlr/megatron-lm/mcore_ci_"+in.Variant+":main"))
	}
	add("build it; --target main stops before the stage that needs CI's secret", "构建镜像；--target main 停在需要 CI 密钥的阶段之前",
		"cd "+tree+" && docker build --target main --build-arg FROM_IMAGE_NAME="+base+" --build-arg IMAGE_TYPE="+in.Variant+" -f docker/Dockerfile.ci.dev -t "+tag+" .")
	add("make a file for pyxis and enroot, once, on a shared file system", "为 pyxis 与 enroot 生成一个文件，放在共享文件系统上，只需一次", "enroot import -o "+file+" dockerd://"+tag)
	add("make a file for singularity or apptainer", "为 singularity 或 apptainer 生成一个文件",
		"apptainer build "+strings.TrimSuffix(file, ".sqsh")+".sif docker-daemon://"+tag)
	cache := ` -v "$HOME/.cache/uv:/root/.cache/uv"`
	if in.NoCache {
		cache = ""
	}
	at := `"$PWD"`
	if in.Worktree != "" {
		at = tree
	}
	add("enter it; uv's cache of the host keeps downloads and the container's disk small", "进入容器；挂载宿主机的 uv 缓存可减少下载与容器磁盘占用",
		"docker run --rm -it --gpus all --network host --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 -v "+at+":/workspace"+cache+" -w /workspace "+tag+" bash")
	return steps, nil
}

var scpRemote = lazy.New(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9][A-Za-z0-9.-]*):[^/].*$`)

// registryHost returns the host of a git remote, given in any of git's URL forms. It
// drops the port, which is that of git and not of the registry.
func registryHost(remote string) (string, error) {
	bad := &FieldError{Field: "remote", Value: remote, Msg: phrase("is not the URL of a git remote", "不是 git 远端的 URL"), Fix: phrase("such as git@gitlab.example.com:group/project.git", "例如 git@gitlab.example.com:group/project.git")}
	host := ""
	if m := scpRemote.FindStringSubmatch(remote); m != nil && !strings.Contains(remote, "://") {
		host = m[1]
	} else if u, err := url.Parse(remote); err == nil {
		host = u.Hostname()
	}
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`).MatchString(host) {
		return "", bad
	}
	return host, nil
}

// convertOnce tells how to convert a registry's image to the runtime's file format.
func convertOnce(runtime string) lang.Text {
	how := "enroot import -o FILE.sqsh docker://IMAGE"
	if runtime == Apptainer || runtime == Singularity {
		how = runtime + " build FILE.sif docker://IMAGE"
	}
	return phrase("make a file of it once: %s", "请先转成文件一次：%s", how)
}

// Distribute renders a short job that brings the image of s to every node that s
// requests. For docker, each node pulls the image, or loads it if it is a tar file. For
// other runtimes, each node reads the image file once to fill its cache. The job uses
// no GPU.
func Distribute(s Spec, o Options) (Script, error) {
	s = o.Site.Fill(s)
	if !s.contained() {
		return Script{}, FieldErrors{{Field: "container.image", Msg: phrase("is missing", "缺失"), Fix: phrase("give the image to distribute, and container.runtime", "请给出要分发的镜像与 container.runtime")}}
	}
	image := s.Container.Image
	get := `cat -- "$1" >/dev/null`
	switch {
	case s.Container.Runtime == Docker && strings.HasSuffix(image, ".tar") && path.IsAbs(image):
		get = `docker load --quiet --input "$1"`
	case s.Container.Runtime == Docker:
		get = `docker pull --quiet "$1"`
	case !strings.HasPrefix(image, "/") && !strings.HasPrefix(image, "./"):
		return Script{}, FieldErrors{{Field: "container.image", Value: image, Msg: phrase("is a registry's name, which each node would fetch by itself", "是镜像仓库中的名称，每个节点都会各自拉取"), Fix: convertOnce(s.Container.Runtime)}}
	}
	if errs := s.Validate(); len(errs) > 0 {
		return Script{}, FieldErrors(errs)
	}
	name := "image-" + s.WithDefaults().Name
	return Render(Spec{
		Name: name[:min(64, len(name))], Account: s.Account, Partition: s.Partition, QOS: s.QOS, Reservation: s.Reservation,
		Nodes: s.Nodes, GPUsPerNode: new(0), Nodelist: s.Nodelist, Exclude: s.Exclude, Time: "30",
		Worktree: s.Worktree, LogDir: s.LogDir, Monitor: new(false), Guards: new(false), Launcher: Custom,
		LauncherArgv: []string{"bash", "-c", get + ` && echo "image: ready on ${SLURMD_NODENAME:-$HOSTNAME}"`},
		Script:       "image", Args: []string{image},
	}, Options{Version: o.Version})
}
