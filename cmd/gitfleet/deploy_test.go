package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/daemon"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
)

// deployed is the directory of the files that users install.
const deployed = "../../deploy"

func deployFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// deployment returns the Deployment of the kustomization.
func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	first, _, _ := strings.Cut(deployFile(t, "kubernetes/deployment.yaml"), "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(first), &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// The daemon accepts the arguments of all ways to install it.
func TestDeployedArguments(t *testing.T) {
	lines := map[string]string{"deployment.yaml": strings.Join(deployment(t).Spec.Template.Spec.Containers[0].Args, " ")}
	for line := range strings.Lines(deployFile(t, "systemd/gitfleet.service")) {
		if command, ok := strings.CutPrefix(line, "ExecStart=/usr/local/bin/gitfleet "); ok {
			lines["gitfleet.service"] = command
		}
	}
	if len(lines) != 2 {
		t.Errorf("found %v", lines)
	}
	for file, line := range lines {
		if err := understood(line); err != nil || !strings.HasPrefix(line, "run ") {
			t.Errorf("%s: %q: %v", file, line, err)
		}
	}
}

// The configuration for the management cluster is valid and matches the Deployment: the files
// in it are mounted, the state is on the volume, and the probes use the port.
func TestDeployedConfiguration(t *testing.T) {
	cfg, err := settings.Load(filepath.Join(deployed, "kubernetes/gitfleet.yaml"), daemon.NewRun().Flags())
	if err != nil {
		t.Fatal(err)
	}
	d := deployment(t)
	c := d.Spec.Template.Spec.Containers[0]
	var mounts []string
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, m.MountPath)
	}
	for _, file := range []string{cfg.Server.CertFile, cfg.Server.KeyFile, cfg.Source.TokenFile, c.Args[len(c.Args)-1]} {
		if !slices.Contains(mounts, filepath.Dir(file)) {
			t.Errorf("%s is not below %v", file, mounts)
		}
	}
	if !slices.Contains(mounts, cfg.StateDir) {
		t.Errorf("the state directory %s is not on a volume: %v", cfg.StateDir, mounts)
	}
	for _, namespace := range namespacesOfRole(t, "gitfleet-members") {
		if cfg.Members.SecretNamespace != namespace || namespace == d.Namespace {
			t.Errorf("the kubeconfigs are in %s, and the account may read the Secrets in %s: it should be a namespace with kubeconfigs alone", cfg.Members.SecretNamespace, namespace)
		}
	}
	_, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil || strconv.Itoa(int(c.Ports[0].ContainerPort)) != port {
		t.Errorf("the daemon listens on %s, and its container has port %d", cfg.Listen, c.Ports[0].ContainerPort)
	}
	for _, probe := range []string{c.LivenessProbe.HTTPGet.Port.StrVal, c.ReadinessProbe.HTTPGet.Port.StrVal, c.StartupProbe.HTTPGet.Port.StrVal} {
		if probe != c.Ports[0].Name {
			t.Errorf("a probe asks port %s", probe)
		}
	}
}

// namespacesOfRole returns the namespaces of the Role and the RoleBinding of a name, which have to exist.
func namespacesOfRole(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	for document := range strings.SplitSeq(deployFile(t, "kubernetes/access.yaml"), "\n---\n") {
		var o metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if o.Name == name {
			found = append(found, o.Namespace)
			if !strings.Contains(deployFile(t, "kubernetes/namespace.yaml"), "\n  name: "+o.Namespace+"\n") {
				t.Errorf("there is no namespace %s", o.Namespace)
			}
		}
	}
	if len(found) != 2 {
		t.Errorf("the Role %s and its binding are in %v", name, found)
	}
	return found
}

// All ways to build a release use the same flags: the Makefile, the archives and the image.
func TestReleasesAreBuiltAlike(t *testing.T) {
	for file, release := range map[string]string{"../Makefile": "$(release)", "../.ci/release": "$version", "../.ci/image": "$version"} {
		text := strings.NewReplacer(`'`, `"`, release, "VERSION").Replace(deployFile(t, file))
		if !strings.Contains(text, `go build -trimpath -ldflags "-s -w -X github.com/gitfleet/gitfleet/cmd/gitfleet/version.Release=VERSION"`) || !strings.Contains(text, "CGO_ENABLED=0") {
			t.Errorf("%s builds otherwise", file)
		}
	}
}

// systemd accepts the unit; only the program need not be installed.
func TestSystemdUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	text := strings.Replace(deployFile(t, "systemd/gitfleet.service"), "/usr/local/bin/gitfleet", "/bin/true", 1)
	unit := filepath.Join(t.TempDir(), "gitfleet.service")
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for said := bufio.NewScanner(strings.NewReader(string(out))); said.Scan(); {
		if strings.Contains(said.Text(), "gitfleet.service") {
			t.Error(said.Text())
		}
	}
}
