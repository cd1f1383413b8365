package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Config is the daemon's configuration file. The table in settings.go has the key of every
// field; flags take precedence over the file.
type Config struct {
	// FleetName distinguishes this gitfleet's objects from those of another one on the same
	// cluster. If it is empty, the name in the state directory is used, or one derived from the
	// source.
	FleetName string `json:"fleetName,omitempty"`
	// StateDir holds the clone of the repository, the ledger and the history.
	StateDir string `json:"stateDir,omitempty"`
	// Listen is the address on which the daemon serves.
	Listen       string             `json:"listen,omitempty"`
	LogLevel     string             `json:"logLevel,omitempty"`
	LogFormat    string             `json:"logFormat,omitempty"`
	Tracing      TracingConfig      `json:"tracing"`
	Server       ServerConfig       `json:"server"`
	Source       SourceConfig       `json:"source"`
	Webhook      WebhookConfig      `json:"webhook"`
	Limits       LimitsConfig       `json:"limits"`
	Members      MembersConfig      `json:"members"`
	Rollout      RolloutConfig      `json:"rollout"`
	Drift        DriftConfig        `json:"drift"`
	PullRequests PullRequestsConfig `json:"pullRequests"`
	Forge        ForgeConfig        `json:"forge"`
	History      HistoryConfig      `json:"history"`
	Status       StatusConfig       `json:"status"`
	// Availability configures more than one replica.
	Availability AvailabilityConfig `json:"highAvailability"`

	file  string         // path of the file that was read; empty if none was
	lines map[string]int // line in the file, by key
	// repositoryGiven says that Source.URL is an argument of the command.
	repositoryGiven bool
}

// TracingConfig configures where traces of commits are sent. Without an endpoint none are sent.
type TracingConfig struct {
	Endpoint string `json:"endpoint,omitempty"`
}

// SourceConfig configures the repository of the hub.
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
	SSHKeyEnv         string `json:"sshKeyEnv,omitempty"`
	SSHPassphraseFile string `json:"sshPassphraseFile,omitempty"`
	SSHPassphraseEnv  string `json:"sshPassphraseEnv,omitempty"`
	SSHKnownHosts     string `json:"sshKnownHosts,omitempty"`
	CABundle          string `json:"caBundle,omitempty"`

	GitHubAppID           string `json:"githubAppID,omitempty"`
	GitHubAppInstallation int64  `json:"githubAppInstallation,omitempty"`
	GitHubAppKeyFile      string `json:"githubAppKeyFile,omitempty"`
	GitHubAppKeyEnv       string `json:"githubAppKeyEnv,omitempty"`
	GitHubAppAPIURL       string `json:"githubAppAPIURL,omitempty"`

	AllowHTTP bool `json:"allowHTTP,omitempty"`
	AllowFile bool `json:"allowFile,omitempty"`

	Signatures SignaturesConfig `json:"signatures"`
}

// WebhookConfig configures the secret with which the forge signs webhooks. Without one,
// /webhook is not served.
type WebhookConfig struct {
	SecretFile string `json:"secretFile,omitempty"`
	SecretEnv  string `json:"secretEnv,omitempty"`
}

// LimitsConfig limits what a repository may cost: the first fields limit a fetch, and the
// others the content of a commit.
type LimitsConfig struct {
	FetchBytes   size            `json:"fetchBytes,omitempty"`
	FetchObjects int             `json:"fetchObjects,omitempty"`
	FetchTime    metav1.Duration `json:"fetchTime,omitempty"`
	ListTime     metav1.Duration `json:"listTime,omitempty"`
	ObjectBytes  size            `json:"objectBytes,omitempty"`
	Packs        int             `json:"packs,omitempty"`

	Files          int             `json:"files,omitempty"`
	FileSize       size            `json:"fileSize,omitempty"`
	Documents      int             `json:"documents,omitempty"`
	AliasExpansion int             `json:"aliasExpansion,omitempty"`
	Depth          int             `json:"depth,omitempty"`
	Objects        int             `json:"objects,omitempty"`
	CommitSize     size            `json:"commitSize,omitempty"`
	Builds         int             `json:"builds,omitempty"`
	BuildInput     size            `json:"buildInput,omitempty"`
	BuildTime      metav1.Duration `json:"buildTime,omitempty"`
	BuildOutput    size            `json:"buildOutput,omitempty"`
}

// MembersConfig configures the access to member clusters.
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
	// SweepInterval is the time between two sweeps, which check the watches; zero for none.
	SweepInterval metav1.Duration `json:"sweepInterval,omitempty"`
	// Deletions on one member are held if they are more than DeleteObjects and also more than
	// DeletePercent of gitfleet's objects there.
	DeletePercent int `json:"deletePercent,omitempty"`
	DeleteObjects int `json:"deleteObjects,omitempty"`
}

// Sweep returns the interval for member.Config, where zero means the default.
func (m *MembersConfig) Sweep() time.Duration {
	if m.SweepInterval.Duration == 0 {
		return -1
	}
	return m.SweepInterval.Duration
}

// Brake returns the limits above which deletions on a member are held.
func (m *MembersConfig) Brake() member.Brake {
	return member.Brake{Percent: m.DeletePercent, Objects: m.DeleteObjects}
}

// StatusConfig configures the form of the status.
type StatusConfig struct {
	// Conditions names a set of conditions: current or documented.
	Conditions string `json:"conditions,omitempty"`
}

// RolloutConfig applies to every rollout.
type RolloutConfig struct {
	// MaxUnreachable is the number of unreachable clusters that rollouts do not wait for.
	MaxUnreachable portion `json:"maxUnreachable,omitzero"`
	// AvailableTimeout is how long a cluster may take to become available before its update
	// counts as failed; zero means no limit.
	AvailableTimeout metav1.Duration `json:"availableTimeout,omitzero"`
	// PodFailureTimeout is how long pods of a workload may fail to start before the workload
	// counts as failed.
	PodFailureTimeout metav1.Duration `json:"podFailureTimeout,omitzero"`
}

// Default returns the configuration without a file and flags.
func Default() Config {
	return Config{
		StateDir: "/var/lib/gitfleet",
		Listen:   "127.0.0.1:8085",
		LogLevel: "info", LogFormat: logText,
		Source: SourceConfig{Path: ".", Interval: Seconds(30)},
		Limits: LimitsConfig{
			FetchBytes: 512 << 20, FetchObjects: 5_000_000, FetchTime: Seconds(600), ListTime: Seconds(30), ObjectBytes: 128 << 20, Packs: 50,
			Files: 50_000, FileSize: 4 << 20, Documents: 1_000, AliasExpansion: 100, Depth: 100, Objects: 100_000,
			CommitSize: 512 << 20, Builds: 5_000, BuildInput: 64 << 20, BuildTime: Seconds(60), BuildOutput: 10 << 20,
		},
		Members: MembersConfig{
			Concurrency: 8, MaxRequests: 128, Timeout: Seconds(30), ProbeInterval: Seconds(10), SweepInterval: Seconds(6 * 3600),
			DeletePercent: 30, DeleteObjects: 10,
		},
		Rollout: RolloutConfig{
			MaxUnreachable: portion{intstr.FromString("100%")}, AvailableTimeout: Seconds(600), PodFailureTimeout: Seconds(30),
		},
		Drift:   DriftConfig{Mode: revertDrift, MinAge: Seconds(120), MaxOpen: 10},
		Forge:   ForgeConfig{Interval: Seconds(30)},
		History: HistoryConfig{MaxSize: 64 << 20},
		Status:  StatusConfig{Conditions: string(status.CurrentConditions)},
	}
}

// SetRepository replaces the repository by the argument of a command, which may be a local path.
func (c *Config) SetRepository(url string) {
	c.Source.URL, c.Source.AllowFile, c.repositoryGiven = url, true, true
}

// FilePath returns the file that was read; empty if none was.
func (c Config) FilePath() string { return c.file }

// Seconds returns a duration as a setting has it.
func Seconds(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }

// Load returns the defaults, overridden by the file, overridden by flags.
func Load(path string, flags *pflag.FlagSet) (Config, error) {
	c, err := Read(path, flags)
	if err != nil {
		return c, err
	}
	return c, c.Validate()
}

// Read is Load without validation, for callers that use only a part of the configuration.
func Read(path string, flags *pflag.FlagSet) (Config, error) {
	c := Default()
	if path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return c, fmt.Errorf("read configuration: %w", err)
		}
		if err := c.parse(path, raw); err != nil {
			return c, err
		}
	}
	if err := c.override(flags); err != nil {
		return c, err
	}
	var err error
	if c.StateDir, err = filepath.Abs(c.StateDir); err != nil {
		return c, fmt.Errorf("stateDir: %w", err)
	}
	return c, nil
}
