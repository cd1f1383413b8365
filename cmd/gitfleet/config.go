package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/reconciler/member"
)

// Config is the daemon's configuration file. Every field is a flag as well; a
// flag wins over the file.
type Config struct {
	// FleetName tells this gitfleet's objects from another's on one cluster.
	FleetName string `json:"fleetName,omitempty"`
	// StateDir holds the clone of the repository and the ledger.
	StateDir string `json:"stateDir,omitempty"`
	// Listen is where the daemon answers.
	Listen   string        `json:"listen,omitempty"`
	LogLevel string        `json:"logLevel,omitempty"`
	Source   SourceConfig  `json:"source"`
	Members  MembersConfig `json:"members"`
}

// SourceConfig says which repository is the hub.
type SourceConfig struct {
	URL      string          `json:"url,omitempty"`
	Branch   string          `json:"branch,omitempty"`
	Tag      string          `json:"tag,omitempty"`
	SemVer   string          `json:"semver,omitempty"`
	Commit   string          `json:"commit,omitempty"`
	Path     string          `json:"path,omitempty"`
	Interval metav1.Duration `json:"interval,omitempty"`

	TokenFile         string `json:"tokenFile,omitempty"`
	TokenEnv          string `json:"tokenEnv,omitempty"`
	BearerFile        string `json:"bearerFile,omitempty"`
	BearerEnv         string `json:"bearerEnv,omitempty"`
	Username          string `json:"username,omitempty"`
	PasswordFile      string `json:"passwordFile,omitempty"`
	PasswordEnv       string `json:"passwordEnv,omitempty"`
	SSHKeyFile        string `json:"sshKeyFile,omitempty"`
	SSHPassphraseFile string `json:"sshPassphraseFile,omitempty"`
	SSHKnownHosts     string `json:"sshKnownHosts,omitempty"`
	CABundle          string `json:"caBundle,omitempty"`

	GitHubAppID           string `json:"githubAppID,omitempty"`
	GitHubAppInstallation int64  `json:"githubAppInstallation,omitempty"`
	GitHubAppKeyFile      string `json:"githubAppKeyFile,omitempty"`
	GitHubAppAPIURL       string `json:"githubAppAPIURL,omitempty"`

	AllowHTTP bool `json:"allowHTTP,omitempty"`
	AllowFile bool `json:"allowFile,omitempty"`
}

// MembersConfig says how member clusters are reached.
type MembersConfig struct {
	KubeconfigDir   string          `json:"kubeconfigDir,omitempty"`
	Kubeconfig      string          `json:"kubeconfig,omitempty"`
	SecretNamespace string          `json:"secretNamespace,omitempty"`
	AllowExec       bool            `json:"allowKubeconfigExec,omitempty"`
	AllowInsecure   bool            `json:"allowInsecureKubeconfig,omitempty"`
	Concurrency     int             `json:"concurrency,omitempty"`
	MaxRequests     int             `json:"maxRequests,omitempty"`
	Timeout         metav1.Duration `json:"timeout,omitempty"`
	ProbeInterval   metav1.Duration `json:"probeInterval,omitempty"`
	// Deletions from one member are held if they are more than DeleteObjects
	// and more than DeletePercent of what gitfleet has there.
	DeletePercent int `json:"deletePercent,omitempty"`
	DeleteObjects int `json:"deleteObjects,omitempty"`
}

func defaultConfig() Config {
	return Config{
		FleetName: "default",
		StateDir:  "/var/lib/gitfleet",
		Listen:    "127.0.0.1:8085",
		LogLevel:  "info",
		Source:    SourceConfig{Path: ".", Interval: metav1.Duration{Duration: 30 * time.Second}},
		Members: MembersConfig{
			Concurrency: 8, MaxRequests: 128,
			Timeout:       metav1.Duration{Duration: 30 * time.Second},
			ProbeInterval: metav1.Duration{Duration: 10 * time.Second},
			DeletePercent: 30, DeleteObjects: 10,
		},
	}
}

// bind makes a flag of every setting.
func (c *Config) bind(f *pflag.FlagSet) {
	f.StringVar(&c.FleetName, "fleet-name", c.FleetName, "name of this fleet: the value of the managed-by label on members; never change it")
	f.StringVar(&c.StateDir, "state-dir", c.StateDir, "directory for the clone and the ledger")
	f.StringVar(&c.Listen, "listen", c.Listen, "address to answer on")
	f.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
	c.Source.bind(f)
	c.Members.bind(f)
}

func (s *SourceConfig) bind(f *pflag.FlagSet) {
	f.StringVar(&s.URL, "url", s.URL, "repository: https://…, ssh://…, user@host:path")
	f.StringVar(&s.Branch, "branch", s.Branch, "branch to follow; the remote's default branch if no reference is set")
	f.StringVar(&s.Tag, "tag", s.Tag, "tag to follow")
	f.StringVar(&s.SemVer, "semver", s.SemVer, "range of tags to follow, such as \">=1.2 <2\"")
	f.StringVar(&s.Commit, "commit", s.Commit, "commit to stay at")
	f.StringVar(&s.Path, "path", s.Path, "directory of the repository that is the hub")
	f.DurationVar(&s.Interval.Duration, "interval", s.Interval.Duration, "time between two polls")
	f.StringVar(&s.TokenFile, "token-file", s.TokenFile, "file with an access token for the repository")
	f.StringVar(&s.TokenEnv, "token-env", s.TokenEnv, "environment variable with an access token")
	f.StringVar(&s.BearerFile, "bearer-file", s.BearerFile, "file with a token to send as Authorization: Bearer")
	f.StringVar(&s.BearerEnv, "bearer-env", s.BearerEnv, "environment variable with such a token")
	f.StringVar(&s.Username, "username", s.Username, "user name that goes with the token or password")
	f.StringVar(&s.PasswordFile, "password-file", s.PasswordFile, "file with a password for the repository")
	f.StringVar(&s.PasswordEnv, "password-env", s.PasswordEnv, "environment variable with a password")
	f.StringVar(&s.SSHKeyFile, "ssh-key-file", s.SSHKeyFile, "file with a private key for ssh://")
	f.StringVar(&s.SSHPassphraseFile, "ssh-passphrase-file", s.SSHPassphraseFile, "file with the passphrase of the private key")
	f.StringVar(&s.SSHKnownHosts, "ssh-known-hosts", s.SSHKnownHosts, "known_hosts file with the key of the Git server; required for ssh://")
	f.StringVar(&s.CABundle, "ca-bundle", s.CABundle, "PEM file of certificates to trust for https://, beside the system's")
	f.StringVar(&s.GitHubAppID, "github-app-id", s.GitHubAppID, "ID of a GitHub App to authenticate as")
	f.Int64Var(&s.GitHubAppInstallation, "github-app-installation", s.GitHubAppInstallation, "ID of the App's installation")
	f.StringVar(&s.GitHubAppKeyFile, "github-app-key-file", s.GitHubAppKeyFile, "file with the App's private key")
	f.StringVar(&s.GitHubAppAPIURL, "github-app-api-url", s.GitHubAppAPIURL, "API of GitHub Enterprise Server, https://HOST/api/v3")
	f.BoolVar(&s.AllowHTTP, "allow-http", s.AllowHTTP, "allow http:// for the repository, where anybody on the way can change what the fleet runs")
	f.BoolVar(&s.AllowFile, "allow-file", s.AllowFile, "allow file:// and paths for the repository")
}

func (m *MembersConfig) bind(f *pflag.FlagSet) {
	f.StringVar(&m.KubeconfigDir, "kubeconfig-dir", m.KubeconfigDir, "directory with a file NAME.kubeconfig for each member")
	f.StringVar(&m.Kubeconfig, "kubeconfig", m.Kubeconfig, "kubeconfig with a context for each member")
	f.StringVar(&m.SecretNamespace, "secret-namespace", m.SecretNamespace, "in a cluster: namespace with a Secret NAME-kubeconfig for each member")
	f.BoolVar(&m.AllowExec, "allow-kubeconfig-exec", m.AllowExec, "allow kubeconfigs that run a program")
	f.BoolVar(&m.AllowInsecure, "allow-insecure-kubeconfig", m.AllowInsecure, "allow kubeconfigs that do not check the server's certificate")
	f.IntVar(&m.Concurrency, "member-concurrency", m.Concurrency, "writes in flight to one member")
	f.IntVar(&m.MaxRequests, "max-requests", m.MaxRequests, "writes in flight to all members together")
	f.DurationVar(&m.Timeout.Duration, "member-timeout", m.Timeout.Duration, "longest time for one request to a member")
	f.IntVar(&m.DeletePercent, "delete-percent", m.DeletePercent, "hold deletions that are more than this share of what gitfleet has on a member, in percent")
	f.IntVar(&m.DeleteObjects, "delete-objects", m.DeleteObjects, "never hold deletions of no more than so many objects")
	f.DurationVar(&m.ProbeInterval.Duration, "probe-interval", m.ProbeInterval.Duration, "time between two probes of a member")
}

// loadConfig returns the defaults, changed by the file, changed by the flags
// that were set.
func loadConfig(path string, flags *pflag.FlagSet) (Config, error) {
	c := defaultConfig()
	if path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return c, fmt.Errorf("read configuration: %w", err)
		}
		if err := yaml.UnmarshalStrict(raw, &c); err != nil {
			return c, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "))
		}
	}
	over := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.bind(over)
	var errs []error
	flags.Visit(func(f *pflag.Flag) {
		if over.Lookup(f.Name) != nil {
			errs = append(errs, over.Set(f.Name, f.Value.String()))
		}
	})
	var err error
	if c.StateDir, err = filepath.Abs(c.StateDir); err != nil {
		errs = append(errs, err)
	}
	return c, errors.Join(append(errs, c.Validate())...)
}

// Validate names every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	for _, msg := range validation.IsValidLabelValue(c.FleetName) {
		errs = append(errs, fmt.Errorf("fleetName: %s", msg))
	}
	if c.FleetName == "" {
		errs = append(errs, errors.New("fleetName: must not be empty"))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("listen: %w; use HOST:PORT", err))
	}
	if _, err := c.level(); err != nil {
		errs = append(errs, err)
	}
	if c.Source.URL == "" {
		errs = append(errs, errors.New("source.url: set the repository that is the hub (--url)"))
	}
	errs = append(errs, c.Members.validate())
	return errors.Join(errs...)
}

func (m MembersConfig) validate() error {
	var errs []error
	if m.KubeconfigDir == "" && m.Kubeconfig == "" && m.SecretNamespace == "" {
		errs = append(errs, errors.New("members: say where the kubeconfigs of the members are: kubeconfigDir, kubeconfig or secretNamespace"))
	}
	for _, n := range []struct {
		field string
		value int64
	}{
		{"concurrency", int64(m.Concurrency)}, {"maxRequests", int64(m.MaxRequests)},
		{"timeout", int64(m.Timeout.Duration)}, {"probeInterval", int64(m.ProbeInterval.Duration)},
		{"deletePercent", int64(m.DeletePercent)}, {"deleteObjects", int64(m.DeleteObjects)},
	} {
		if n.value <= 0 {
			errs = append(errs, fmt.Errorf("members.%s: must be more than zero", n.field))
		}
	}
	return errors.Join(errs...)
}

func (c Config) level() (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return l, fmt.Errorf("logLevel: %q is none of debug, info, warn, error", c.LogLevel)
	}
	return l, nil
}

// git is the part of the configuration that is Git's.
func (c Config) git(log *slog.Logger) gitsource.Config {
	s := c.Source
	return gitsource.Config{
		URL: s.URL, Ref: gitsource.Ref{Branch: s.Branch, Tag: s.Tag, SemVer: s.SemVer, Commit: s.Commit},
		Interval: s.Interval.Duration, StateDir: filepath.Join(c.StateDir, "git"),
		Auth: gitsource.Auth{
			Token: secret(s.TokenFile, s.TokenEnv), Bearer: secret(s.BearerFile, s.BearerEnv),
			Username: s.Username, Password: secret(s.PasswordFile, s.PasswordEnv), CABundle: s.CABundle,
			SSH: gitsource.SSH{Key: secret(s.SSHKeyFile, ""), Passphrase: secret(s.SSHPassphraseFile, ""), KnownHosts: s.SSHKnownHosts},
			GitHubApp: gitsource.GitHubApp{
				ID: s.GitHubAppID, Installation: s.GitHubAppInstallation,
				Key: secret(s.GitHubAppKeyFile, ""), APIURL: s.GitHubAppAPIURL,
			},
		},
		AllowHTTP: s.AllowHTTP, AllowFile: s.AllowFile, Logger: log, Getenv: os.Getenv,
	}
}

func secret(file, env string) gitsource.SecretSource {
	return gitsource.SecretSource{File: file, Env: env}
}

// credentials is the part of the configuration that finds members.
func (m MembersConfig) credentials() member.Credentials {
	return member.Credentials{Dir: m.KubeconfigDir, File: m.Kubeconfig, AllowExec: m.AllowExec, AllowInsecure: m.AllowInsecure}
}
