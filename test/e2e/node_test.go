package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// accountPath is where containers find the token of their service account.
const accountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// A node runs the pods of a namespace as a kubelet does, on the network of this machine: a
// container is the entrypoint of the built image, running as the pod's user in a root directory
// with nothing but the image and the volumes. Its probes decide whether it is ready. Pods have one
// container; everything else that a pod could ask for is an error.
type node struct {
	t         *testing.T
	cluster   fleet.Member
	client    *kubernetes.Clientset
	namespace string
	image     *image
	claims    string // directory with the content of the claims that are not mounted
	log       *os.File

	mu      sync.Mutex
	running map[types.UID]*container
}

// A container is running, or has ended.
type container struct {
	pod     *corev1.Pod
	root    string
	mounted map[string]string // claims and where they are mounted, below the root
	command *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	ready   bool
}

// startNode runs a node until the end of the test.
func startNode(t *testing.T, cluster fleet.Member, namespace string) *node {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{
		t: t, cluster: cluster, client: client, namespace: namespace, image: builtImage(t), claims: t.TempDir(),
		running: map[types.UID]*container{},
	}
	if n.log, err = os.Create(filepath.Join(t.TempDir(), "container.log")); err != nil {
		t.Fatal(err)
	}
	ctx, ended := t.Context(), make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := n.sync(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("node: %v", err)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		<-ended
		for _, c := range n.running {
			n.stop(c)
		}
		if t.Failed() {
			text, _ := os.ReadFile(n.log.Name())
			t.Logf("log of the container:\n%s", text[max(0, len(text)-8<<10):])
		}
	})
	return n
}

// sync starts new pods, stops deleted ones, restarts containers that have ended, and reports
// their status.
func (n *node) sync(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	pods, err := n.client.CoreV1().Pods(n.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		c := n.running[pod.UID]
		switch {
		case pod.DeletionTimestamp != nil:
			if c != nil {
				n.stop(c)
				delete(n.running, pod.UID)
			}
			now := int64(0)
			err = n.client.CoreV1().Pods(n.namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
			if apierrors.IsNotFound(err) {
				err = nil
			}
		case pod.Spec.NodeName == "": // a pod without a node is deleted at once
			err = n.client.CoreV1().Pods(n.namespace).Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: "node"},
			}, metav1.CreateOptions{})
		case c == nil:
			if c, err = n.create(ctx, pod); err == nil {
				n.running[pod.UID] = c
				err = n.run(c)
			}
		default:
			select {
			case <-c.ended:
				err = n.run(c)
			default:
			}
			err = errors.Join(err, n.report(ctx, c))
		}
		if err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// create creates the root directory of a container. Only volumes that are not read-only can be
// written.
func (n *node) create(ctx context.Context, pod *corev1.Pod) (*container, error) {
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) > 0 {
		return nil, errors.New("a pod of this node has one container")
	}
	root, err := os.MkdirTemp(n.claims, "root-") // beside the claims, so that they can be moved there
	if err != nil {
		return nil, err
	}
	c := &container{pod: pod, root: root, mounted: map[string]string{}}
	if err := n.image.linkTo(root); err != nil {
		return nil, err
	}
	if err := n.account(ctx, c); err != nil {
		return nil, err
	}
	writable := map[string]bool{}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		at := filepath.Join(root, mount.MountPath)
		for _, v := range pod.Spec.Volumes {
			if v.Name != mount.Name {
				continue
			}
			if err := n.mount(ctx, c, &v, at); err != nil {
				return nil, fmt.Errorf("volume %s: %w", v.Name, err)
			}
			writable[at] = !mount.ReadOnly
		}
	}
	return c, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil || !entry.IsDir():
			return err
		case writable[path]:
			return filepath.SkipDir
		}
		return os.Chmod(path, 0o555)
	})
}

// account writes the token of the service account, as the volume that every pod gets does.
func (n *node) account(ctx context.Context, c *container) error {
	hour := int64(3600)
	token, err := n.client.CoreV1().ServiceAccounts(n.namespace).CreateToken(ctx, c.pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &hour,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: c.pod.Name, UID: c.pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return writeBelow(filepath.Join(c.root, accountPath), map[string][]byte{
		"token": []byte(token.Status.Token), "ca.crt": n.cluster.Config.CAData, "namespace": []byte(n.namespace),
	})
}

// mount creates the content of a volume in a directory.
func (n *node) mount(ctx context.Context, c *container, v *corev1.Volume, at string) error {
	switch {
	case v.ConfigMap != nil:
		found, err := n.client.CoreV1().ConfigMaps(n.namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		files := map[string][]byte{}
		for name, text := range found.Data {
			files[name] = []byte(text)
		}
		return writeBelow(at, files)
	case v.Secret != nil:
		found, err := n.client.CoreV1().Secrets(n.namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return writeBelow(at, found.Data)
	case v.PersistentVolumeClaim != nil:
		name := v.PersistentVolumeClaim.ClaimName
		if _, err := n.client.CoreV1().PersistentVolumeClaims(n.namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		kept := filepath.Join(n.claims, name)
		c.mounted[kept] = at
		_ = os.Remove(at) // the empty directory of the image, if it has it
		return errors.Join(os.MkdirAll(kept, 0o755), os.MkdirAll(filepath.Dir(at), 0o755), os.Rename(kept, at))
	case v.EmptyDir != nil:
		return os.MkdirAll(at, 0o755)
	}
	return errors.New("this node has no such volumes")
}

func writeBelow(dir string, files map[string][]byte) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o444)); err != nil {
			return err
		}
	}
	return nil
}

// run starts the process of a container.
func (n *node) run(c *container) error {
	spec := &c.pod.Spec.Containers[0]
	c.command = n.process(c, spec.Args)
	c.command.Stdout, c.command.Stderr = n.log, n.log
	if err := c.command.Start(); err != nil {
		return err
	}
	c.ended, c.ready = make(chan struct{}), false
	go func(command *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = command.Wait() // the exit status is in ProcessState
	}(c.command, c.ended)
	return nil
}

// process returns a process of the container that is not started yet, with arguments for the
// entrypoint. It has the user of the pod, in its own user namespace, and no privileges.
func (n *node) process(c *container, args []string) *exec.Cmd {
	host, port, _ := strings.Cut(strings.TrimPrefix(n.cluster.Config.Host, "https://"), ":")
	env := append(slices.Clone(n.image.config.Env), "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	for _, e := range c.pod.Spec.Containers[0].Env {
		env = append(env, e.Name+"="+e.Value)
	}
	isolated := asUser(*c.pod.Spec.SecurityContext.RunAsUser, *c.pod.Spec.SecurityContext.RunAsGroup)
	isolated.Chroot, isolated.Pdeathsig = c.root, syscall.SIGKILL
	command := append(slices.Clone(n.image.config.Entrypoint), args...)
	return &exec.Cmd{Path: n.image.program(), Args: command, Dir: "/", Env: env, SysProcAttr: isolated}
}

// asUser gives a process its own user namespace, in which it is a user without privileges.
func asUser(user, group int64) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: int(user), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: int(group), HostID: os.Getgid(), Size: 1}},
	}
}

// exec runs gitfleet in the container, and returns its output.
func (n *node) exec(args ...string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.running {
		out, err := n.process(c, args).CombinedOutput()
		return string(out), err
	}
	return "", errors.New("no container runs")
}

// kill kills the process of the container, and waits until its next one is ready.
func (n *node) kill() {
	n.mu.Lock()
	for _, c := range n.running {
		_ = c.command.Process.Kill()
		<-c.ended
		c.ready = false
	}
	n.mu.Unlock()
	for !n.ready() && !n.t.Failed() {
		select {
		case <-n.t.Context().Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ready reports whether every container is ready.
func (n *node) ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.running {
		if !c.ready {
			return false
		}
	}
	return true
}

// report sets the status of a pod when the results of its probes change.
func (n *node) report(ctx context.Context, c *container) error {
	spec := &c.pod.Spec.Containers[0]
	ready := n.probe(ctx, c, spec.StartupProbe) && n.probe(ctx, c, spec.LivenessProbe) && n.probe(ctx, c, spec.ReadinessProbe)
	if ready == c.ready {
		return nil
	}
	c.ready = ready
	k := kubelet{client: n.client}
	k.sick.Store(!ready)
	k.report(ctx, c.pod)
	return nil
}

var probing = http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // as a kubelet does
}}

// probe reports whether the container passes a probe.
func (n *node) probe(ctx context.Context, c *container, p *corev1.Probe) bool {
	port := p.HTTPGet.Port.IntValue()
	for _, named := range c.pod.Spec.Containers[0].Ports {
		if named.Name == p.HTTPGet.Port.StrVal {
			port = int(named.ContainerPort)
		}
	}
	url := fmt.Sprintf("%s://127.0.0.1:%d%s", strings.ToLower(string(p.HTTPGet.Scheme)), port, p.HTTPGet.Path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := probing.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

// stop ends a container as a kubelet does, and keeps the content of its claims.
func (n *node) stop(c *container) {
	_ = c.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(time.Minute):
		n.t.Error("the container did not end after SIGTERM")
		_ = c.command.Process.Kill()
		<-c.ended
	}
	if got := c.command.ProcessState.String(); got != "exit status 0" {
		n.t.Errorf("the container ended with %s", got)
	}
	_ = filepath.WalkDir(c.root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return err
	})
	for kept, at := range c.mounted {
		if err := os.Rename(at, kept); err != nil {
			n.t.Error(err)
		}
	}
}
