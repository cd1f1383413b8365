package settings

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/charts"
	"github.com/gitfleet/gitfleet/gitsource/decryption"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hostlimit"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/kubeconfig"
	"github.com/gitfleet/gitfleet/reconciler/replica"
	"github.com/gitfleet/gitfleet/reconciler/server/access"
	"github.com/gitfleet/gitfleet/reconciler/tracing"
)

// GitConfig returns the configuration of package gitsource.
func (c Config) GitConfig(log *slog.Logger) gitsource.Config {
	s := c.Source
	return gitsource.Config{
		URL: s.URL, Ref: gitsource.Ref{Branch: s.Branch, Tag: s.Tag, SemVer: s.SemVer, Commit: s.Commit},
		Interval: s.Interval.Duration, Dir: filepath.Join(c.StateDir, "git"), Auth: s.auth(),
		AllowHTTP: s.AllowHTTP, AllowFile: s.AllowFile, Signatures: s.Signatures.Requirements(), Limits: c.Limits.git(),
		Logger: log, Getenv: os.Getenv, Hosts: c.hosts(),
	}
}

func (c Config) hosts() remote.Hosts {
	all := remote.Hosts{}
	for _, h := range c.Hosts {
		all[strings.ToLower(h.Host)] = remote.Host{Auth: h.auth(), PlainHTTP: h.PlainHTTP}
	}
	return all
}

func (s SourceConfig) auth() remote.Auth {
	return remote.Auth{
		Token: secret(s.TokenFile, s.TokenEnv), Bearer: secret(s.BearerFile, s.BearerEnv),
		Username: s.Username, Password: secret(s.PasswordFile, s.PasswordEnv), CABundle: s.CABundle,
		SSH: remote.SSH{
			Key: secret(s.SSHKeyFile, s.SSHKeyEnv), Passphrase: secret(s.SSHPassphraseFile, s.SSHPassphraseEnv), KnownHosts: s.SSHKnownHosts,
		},
		GitHubApp: remote.GitHubApp{
			ID: s.GitHubAppID, Installation: s.GitHubAppInstallation,
			Key: secret(s.GitHubAppKeyFile, s.GitHubAppKeyEnv), APIURL: s.GitHubAppAPIURL,
		},
	}
}

// Requirements returns the required signatures; nil if none are.
func (s SignaturesConfig) Requirements() *gitsource.Signatures {
	if s.unverified || !s.present && len(s.OpenPGP)+len(s.Paths) == 0 && s.AllowedSigners == "" && s.Since == "" && !s.AllowRewrite {
		return nil
	}
	d := &gitsource.Signatures{OpenPGP: s.OpenPGP, AllowedSigners: s.AllowedSigners, Since: s.Since, AllowRewrite: s.AllowRewrite}
	grants := s.grants()
	for i, p := range s.Paths {
		d.Paths = append(d.Paths, gitsource.SignedPath{Grant: *grants[i], Signers: p.Signers})
	}
	return d
}

// Unverified returns the same without verification of signatures. What files may produce stays limited.
func (s SignaturesConfig) Unverified() SignaturesConfig {
	s.unverified = true
	return s
}

// grants are what the files of the paths may produce; nil if there are no paths.
func (s SignaturesConfig) grants() grant.Set {
	var all grant.Set
	for i, p := range s.Paths {
		all = append(all, &grant.Grant{
			Path: p.Path, Field: fmt.Sprintf("source.signatures.paths[%d]", i),
			Namespaces: p.Namespaces, Kinds: p.Kinds, Placements: p.Placements, SharedBases: p.SharedBases,
		})
	}
	return all
}

// plainFile is the maximum size of any file, whether or not it is a manifest, since generators
// of kustomizations read other files as well.
const plainFile = 16 << 20

func (l LimitsConfig) git() gitsource.Limits {
	return gitsource.Limits{
		Limits:  remote.Limits{FetchBytes: int64(l.FetchBytes), ListTime: l.ListTime.Duration},
		Objects: l.FetchObjects, FetchTime: l.FetchTime.Duration,
		ObjectBytes: int64(l.ObjectBytes), UnpackedBytes: int64(l.Unpacked), Packs: l.Packs, FileBytes: max(plainFile, int64(l.FileSize)),
	}
}

// Remotes are caches of what commits need from elsewhere.
type Remotes struct {
	Bases  *gitsource.Bases
	Charts *charts.Cache
}

// FetchChart fetches a chart of a commit into the cache.
func (r Remotes) FetchChart(ctx context.Context, chart hub.RemoteChart) error {
	return r.Charts.Fetch(ctx, chart.Chart)
}

// UserRemotes returns the remote bases and charts in the cache of the user, which commands share.
func (c Config) UserRemotes() Remotes {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return c.remotes(filepath.Join(dir, "gitfleet"), c.GitConfig(nil))
}

// Remotes returns the remote bases and charts in the cache of the daemon. fetching is called for bases, as that of gitsource.Hooks.
func (c Config) Remotes(log *slog.Logger, fetching func(object string) (end func(), err error)) Remotes {
	git := c.GitConfig(log)
	git.Hooks.Fetching = fetching
	return c.remotes(c.StateDir, git)
}

// The limits of a chart that no setting has. The time keeps a server that does not respond from holding up a commit.
const (
	chartArchive = 64 << 20
	chartFiles   = 5_000
	chartCache   = 16 * chartArchive
	chartTime    = 2 * time.Minute
)

func (c Config) remotes(dir string, git gitsource.Config) Remotes {
	hosts := hostlimit.New(int64(c.Limits.FetchBytes))
	return Remotes{
		Bases: gitsource.NewBases(filepath.Join(dir, "bases"), git, hosts),
		Charts: charts.New(charts.Config{
			Dir: filepath.Join(dir, "charts"), Hosts: c.hosts(), Getenv: os.Getenv, Fetches: hosts,
			Limits: charts.Limits{
				ArchiveBytes: min(chartArchive, int64(c.Limits.FetchBytes)), UnpackedBytes: int64(c.Limits.BuildInput), Files: chartFiles, CacheBytes: chartCache,
				Time: min(chartTime, c.Limits.FetchTime.Duration),
			},
		}),
	}
}

// Into lets options find what is in the caches.
func (r Remotes) Into(o *hub.Options) { o.Bases, o.Charts = r.Bases.Files, r.Charts.Files }

// HubOptions returns the configuration of package hub, with the remote bases and charts in the cache of the user.
func (c Config) HubOptions() hub.Options {
	l := c.Limits
	options := hub.Options{Path: c.Source.Path, Grants: c.Source.Signatures.grants(), Limits: hub.Limits{
		Files: l.Files, FileSize: int64(l.FileSize), Documents: l.Documents, AliasExpansion: l.AliasExpansion, Depth: l.Depth,
		Objects: l.Objects, CommitSize: int64(l.CommitSize), Builds: l.Builds, BuildInput: int64(l.BuildInput),
		BuildTime: l.BuildTime.Duration, BuildOutput: int64(l.BuildOutput),
	}}
	if c.file != "" || len(c.Gates.Servers) > 0 { // otherwise it is not known what the daemon allows
		options.GateServers = c.Gates.allowed(true)
	}
	c.UserRemotes().Into(&options)
	if keys := decryption.New(c.DecryptionConfig()); keys != nil {
		options.Keys = keys
	}
	return options
}

// DecryptionConfig returns the configuration of package decryption. It must be valid.
func (c Config) DecryptionConfig() decryption.Config {
	d := decryption.Config{File: c.Decryption.KeyFile, Env: c.Decryption.KeyEnv, Service: c.Decryption.Service, Getenv: os.Getenv}
	for _, text := range c.Decryption.Paths {
		if p, err := decryption.ParsePath(text); err == nil {
			d.Paths = append(d.Paths, p)
		}
	}
	return d
}

// Credentials is the part of the configuration that finds members.
func (m MembersConfig) Credentials() (kubeconfig.Sources, error) {
	c := kubeconfig.Sources{Dir: m.KubeconfigDir, File: m.Kubeconfig, AllowExec: m.AllowExec, AllowInsecure: m.AllowInsecure}.Cached()
	if m.SecretNamespace == "" {
		return c, nil
	}
	in, err := rest.InClusterConfig()
	if err != nil {
		return c, fmt.Errorf("members.secretNamespace: %w", err)
	}
	in.QPS = -1 // each member's Secret is read every few seconds, and the server's fairness limits the rate
	client, err := kubernetes.NewForConfig(in)
	if err != nil {
		return c, fmt.Errorf("members.secretNamespace: %w", err)
	}
	c.Secrets = client.CoreV1().Secrets(m.SecretNamespace)
	return c, nil
}

// MemberConfig returns the configuration of a connection to a member: with these credentials, and
// without a log.
func (c Config) MemberConfig(name, kubeContext string, credentials kubeconfig.Sources, encoder *apply.Encoder) member.Config {
	return member.Config{
		Name: name, Fleet: c.FleetName, Encoder: encoder, Log: slog.New(slog.DiscardHandler),
		Connect:       func(ctx context.Context) (*rest.Config, error) { return credentials.Config(ctx, name, kubeContext) },
		DeletionLimit: c.Members.DeletionLimit(), Concurrency: c.Members.Concurrency, Timeout: c.Members.Timeout.Duration,
	}
}

// Loader returns a loader of commits with these remote bases and charts.
func (c Config) Loader(remotes Remotes, log *slog.Logger) *hub.Loader {
	o := c.HubOptions()
	o.LogPanic = func(commit hub.Commit, value, stack string) {
		log.Error("loading a commit panicked", "commit", commit.Hash, "err", value, "stack", stack)
	}
	o.GateServers = c.Gates.allowed(false) // a server that is no longer allowed must not keep the daemon from starting
	remotes.Into(&o)
	return hub.NewLoader(o)
}

// UserLoader returns a loader of the hub at a path, with the remote bases and charts in the cache of the user and without keys.
func (c Config) UserLoader(path string) *hub.Loader {
	o := hub.Options{Path: path}
	c.UserRemotes().Into(&o)
	return hub.NewLoader(o)
}

// ForgeConfig returns the configuration of the forge. Values that are not set are derived from
// the address of the source.
func (c Config) ForgeConfig() forge.Config {
	f := forge.Config{Type: forge.Type(c.Forge.Type), URL: c.Forge.URL, Repository: c.Forge.Repository, CABundle: c.Source.CABundle}
	if u, err := url.Parse(c.Source.URL); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		if f.URL == "" {
			f.URL = u.Scheme + "://" + u.Host
		}
		if f.Repository == "" {
			f.Repository = strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
		}
	}
	if f.Type == "" {
		f.Type = forge.TypeAt(f.URL)
	}
	token := secret(c.Forge.TokenFile, c.Forge.TokenEnv)
	f.Token = func() (string, error) {
		s, err := token.Read(os.Getenv)
		return s.Reveal(), err
	}
	return f
}

// AccessConfig returns the configuration of the access to the daemon.
func (c Config) AccessConfig() access.Config {
	return access.Config{
		Listen: c.Listen, CertFile: c.Server.CertFile, KeyFile: c.Server.KeyFile, TokenFile: c.Server.TokenFile,
		ClientCAFile: c.Server.ClientCAFile, Unauthenticated: c.Server.Unauthenticated, OpenMetrics: c.Server.OpenMetrics,
		Delegated: c.Server.Delegated, Kubeconfig: c.Server.Kubeconfig,
	}
}

// LocalAddress returns the address at which a daemon with this configuration can be reached
// from its own machine.
func (c Config) LocalAddress() string {
	host, port, err := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return c.scheme() + "://localhost:" + port
	}
	return c.scheme() + "://" + c.Listen
}

// scheme returns the scheme of the URLs that the daemon serves.
func (c Config) scheme() string {
	if c.Server.CertFile != "" {
		return "https"
	}
	return "http"
}

// ReplicaConfig returns the configuration of this process as one of several replicas.
func (c Config) ReplicaConfig(identity string, log *slog.Logger) replica.Config {
	return replica.Config{
		Kubeconfig: c.HighAvailability.Kubeconfig, Namespace: c.HighAvailability.Lease.Namespace, Name: c.HighAvailability.Lease.Name,
		Identity: identity, Address: c.scheme() + "://" + c.Listen, Log: log,
	}
}

// level returns the minimum level that is logged.
func (c Config) level() (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return l, fmt.Errorf("%q is none of debug, info, warn, error", c.LogLevel)
	}
	return l, nil
}

// LogsJSON reports whether every line of the log is JSON.
func (c Config) LogsJSON() bool { return c.LogFormat == logJSON }

// Logger returns a logger with the configured level and format. If commits are traced, lines
// about a commit have the ID of its trace.
func (c Config) Logger(w io.Writer) *slog.Logger {
	level, _ := c.level()
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if c.LogsJSON() {
		handler = slog.NewJSONHandler(w, options)
	}
	if c.Tracing.Endpoint != "" {
		handler = tracing.LogHandler(handler)
	}
	return slog.New(handler)
}
