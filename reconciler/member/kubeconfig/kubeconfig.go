// Package kubeconfig finds the kubeconfigs of members, and refuses those that are not safe to use.
package kubeconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// Sources configure where the kubeconfigs of members are stored. They never come from Git. They
// are tried in the order of the fields, and the first that has the member is used.
type Sources struct {
	// Dir is a directory with a file NAME.kubeconfig for each member.
	Dir string
	// File is one kubeconfig with a context for each member.
	File string
	// Secrets, if set, has a Secret NAME-kubeconfig with the key "value" for each member, as
	// Cluster API creates them.
	Secrets corev1.SecretInterface
	// AllowExec permits kubeconfigs that run a program.
	AllowExec bool
	// AllowInsecure permits kubeconfigs that do not verify the server's certificate, or use
	// plain HTTP.
	AllowInsecure bool
	// Dial, if set, opens the connections to members.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// files caches kubeconfigs; nil reads them at each call.
	files *cache
}

// Cached returns sources that read a kubeconfig again only if its file has changed, so that
// Config may be called often.
func (s Sources) Cached() Sources {
	s.files = &cache{read: map[string]*readFile{}}
	return s
}

// Config returns the client configuration of a member. contextName is the context to use. If it
// is empty, the context in File is the one with the member's name, and in Dir and Secrets the
// current one. Each call reads files that have changed. It returns the same pointer as before for a file that has not, if the sources
// are cached; the configuration must not be changed.
func (s Sources) Config(ctx context.Context, name, contextName string) (*rest.Config, error) {
	for _, find := range []func(ctx context.Context, name, contextName string) (*found, error){s.fromDir, s.fromFile, s.fromSecret} {
		f, err := find(ctx, name, contextName)
		if err != nil {
			return nil, err
		}
		switch {
		case f == nil:
		case f.file != nil:
			return f.file.client(f.context, func() (*rest.Config, error) { return s.use(name, f) })
		default:
			return s.use(name, f)
		}
	}
	if err := s.CheckDir(); err != nil {
		return nil, fmt.Errorf("no credentials for member %s: %w", name, err)
	}
	return nil, fmt.Errorf("no credentials for member %s: put %s.kubeconfig into the directory of --kubeconfig-dir, a context %s into the file of --kubeconfig, or a Secret %s-kubeconfig into the daemon's namespace",
		name, name, cmp.Or(contextName, name), name)
}

// CheckDir returns an error that says what is wrong with Dir and how to fix it; nil if Dir can
// be used, or is not set.
func (s Sources) CheckDir() error {
	if s.Dir == "" {
		return nil
	}
	_, err := os.ReadDir(s.Dir)
	fix := "name a directory that has a file NAME.kubeconfig for each member"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		fix = "make it, with a file NAME.kubeconfig for each member, or name another"
	case errors.Is(err, fs.ErrPermission):
		fix = "let the daemon's user read it"
	}
	return fmt.Errorf("the directory of --kubeconfig-dir cannot be read: %w: %s", err, fix)
}

// found is a kubeconfig and the context in it to use.
type found struct {
	config  *clientcmdapi.Config
	context string
	from    string
	// file is the file that it was read from, and that paths in it are relative to; nil if it is in a Secret.
	file *readFile
}

func (s Sources) fromDir(_ context.Context, name, contextName string) (*found, error) {
	if s.Dir == "" {
		return nil, nil
	}
	path := filepath.Join(s.Dir, name+".kubeconfig")
	file, err := s.files.load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		if dir := s.CheckDir(); dir != nil {
			err = dir
		}
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &found{config: file.config, context: cmp.Or(contextName, file.config.CurrentContext), from: path, file: file}, nil
}

func (s Sources) fromFile(_ context.Context, name, contextName string) (*found, error) {
	if s.File == "" {
		return nil, nil
	}
	if _, err := os.Stat(s.File); err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	file, err := s.files.load(s.File)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.File, err)
	}
	f := &found{config: file.config, context: cmp.Or(contextName, name), from: s.File, file: file}
	if file.config.Contexts[f.context] == nil {
		return nil, nil // the member may have a Secret
	}
	return f, nil
}

func (s Sources) fromSecret(ctx context.Context, name, contextName string) (*found, error) {
	if s.Secrets == nil {
		return nil, nil
	}
	secret, err := s.Secrets.Get(ctx, name+"-kubeconfig", metav1.GetOptions{ResourceVersion: "0"}) // this is called often, so that the server's cache is good enough
	if connection.NotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s-kubeconfig: %w", name, err)
	}
	cfg, err := decode(secret.Data["value"], maxSecret)
	if tooLarge, ok := errors.AsType[*sizeError](err); ok {
		return nil, fmt.Errorf("read Secret %s-kubeconfig: its key \"value\" cannot be used: %w", name, tooLarge)
	}
	if err != nil || len(secret.Data["value"]) == 0 {
		return nil, fmt.Errorf("read Secret %s-kubeconfig: its key \"value\" holds no kubeconfig", name)
	}
	return &found{config: cfg, context: cmp.Or(contextName, cfg.CurrentContext), from: "Secret " + secret.Name}, nil
}

// use validates a kubeconfig and converts it into a client configuration.
func (s Sources) use(name string, f *found) (*rest.Config, error) {
	kctx := f.config.Contexts[f.context]
	if kctx == nil {
		return nil, fmt.Errorf("%s: no context %q for member %s", f.from, f.context, name)
	}
	if err := s.check(f, kctx); err != nil {
		return nil, fmt.Errorf("%s: context %q: %w", f.from, f.context, err)
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*f.only(kctx), f.context, nil, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: context %q: %w", f.from, f.context, err)
	}
	cfg.Dial = s.Dial
	return cfg, nil
}

// only returns a copy of a kubeconfig that has only the parts of one context: the original may
// be shared, and have the contexts of thousands of members. The certificates are not copied, since nothing changes them.
func (f *found) only(kctx *clientcmdapi.Context) *clientcmdapi.Config {
	out := clientcmdapi.NewConfig()
	out.Contexts[f.context] = kctx.DeepCopy()
	if c := f.config.Clusters[kctx.Cluster]; c != nil {
		copied := c.DeepCopy()
		copied.CertificateAuthorityData = c.CertificateAuthorityData
		out.Clusters[kctx.Cluster] = copied
	}
	if u := f.config.AuthInfos[kctx.AuthInfo]; u != nil {
		copied := u.DeepCopy()
		copied.ClientCertificateData, copied.ClientKeyData = u.ClientCertificateData, u.ClientKeyData
		out.AuthInfos[kctx.AuthInfo] = copied
	}
	return out
}

// check refuses a kubeconfig that would run a program in the daemon, or that does not verify
// the server.
func (s Sources) check(f *found, kctx *clientcmdapi.Context) error {
	user := f.config.AuthInfos[kctx.AuthInfo]
	if user == nil && kctx.AuthInfo != "" {
		return fmt.Errorf("it names the user %q, which is not there", kctx.AuthInfo) // client-go would send no credentials
	}
	if user != nil {
		if (user.Exec != nil || user.AuthProvider != nil) && !s.AllowExec {
			return errors.New("its user runs a program (exec or auth-provider): use a token or a client certificate, or allow it with the setting members.allowKubeconfigExec")
		}
		if f.file == nil && (user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "") {
			return errors.New("its user names files of the daemon's machine: embed the data instead")
		}
	}
	if cluster := f.config.Clusters[kctx.Cluster]; cluster != nil {
		if (cluster.InsecureSkipTLSVerify || !strings.HasPrefix(cluster.Server, "https://")) && !s.AllowInsecure {
			return errors.New("its cluster is not checked by TLS (insecure-skip-tls-verify, or not https): give certificate-authority-data, or allow it with the setting members.allowInsecureKubeconfig")
		}
		if f.file == nil && cluster.CertificateAuthority != "" {
			return errors.New("its cluster names a file of the daemon's machine: embed certificate-authority-data instead")
		}
	}
	return nil
}
