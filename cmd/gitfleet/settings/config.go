package settings

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// The formats of the log.
const (
	logText = "text"
	logJSON = "json"
)

// Config is the daemon's configuration. The tag key of a field is its name in the file, and the tag
// usage its documentation. Numbers must be more than zero, except durations with the tag zero:"off".
// Flags take precedence over the file.
//
// No setting is a secret. The key of one that names a file or an environment variable with a secret ends
// in File or Env, except of kubeconfigs: gitfleet bugreport removes these secrets, and gitfleet doctor
// opens these files.
type Config struct {
	FleetName         string                 `key:"fleetName" usage:"name of this fleet, the value of the managed-by label on members; derived from the repository at the first start if not set; it cannot be changed later"`
	StateDir          string                 `key:"stateDir" usage:"directory for the clone, the ledger and the history"`
	ResetDamagedState bool                   `key:"resetDamagedState" usage:"move a damaged ledger aside at the start, and rebuild it from Git and the members: rollouts then begin anew, and suspensions and events are lost"`
	Listen            string                 `key:"listen" usage:"address to listen on"`
	LogLevel          string                 `key:"logLevel" usage:"debug, info, warn or error"`
	LogFormat         string                 `key:"logFormat" usage:"text or json"`
	Tracing           TracingConfig          `key:"tracing"`
	Server            ServerConfig           `key:"server"`
	Source            SourceConfig           `key:"source"`
	Hosts             []hostAccess           `key:"hosts" usage:"access to other servers, from which remote bases and charts come, as HOST;username=NAME;passwordFile=FILE; may be repeated; to others no credentials are sent"`
	Decryption        DecryptionConfig       `key:"decryption"`
	Webhook           WebhookConfig          `key:"webhook"`
	Limits            LimitsConfig           `key:"limits"`
	Members           MembersConfig          `key:"members"`
	Rollout           RolloutConfig          `key:"rollout"`
	Drift             DriftConfig            `key:"drift"`
	PullRequests      PullRequestsConfig     `key:"pullRequests"`
	Forge             ForgeConfig            `key:"forge"`
	History           HistoryConfig          `key:"history"`
	Status            StatusConfig           `key:"status"`
	HighAvailability  HighAvailabilityConfig `key:"highAvailability"`
	Gates             GatesConfig            `key:"gates"`

	file  string         // path of the file that was read; empty if none was
	lines map[string]int // line in the file, by key
	// repositoryGiven says that Source.URL is an argument of the command.
	repositoryGiven bool
}

// TracingConfig configures where traces of commits are sent. Without an endpoint none are sent.
type TracingConfig struct {
	Endpoint string `key:"endpoint" usage:"URL of an OpenTelemetry collector, such as http://HOST:4318, that takes a trace of each commit"`
}

// ServerConfig configures access to the daemon.
type ServerConfig struct {
	CertFile        string `key:"certFile" usage:"file with the certificate to serve TLS with"`
	KeyFile         string `key:"keyFile" usage:"file with the key of that certificate"`
	TokenFile       string `key:"tokenFile" usage:"file with the tokens of authorized clients, one per line: TOKEN or TOKEN,USER"`
	ClientCAFile    string `key:"clientCAFile" usage:"file with the CA certificates of authorized clients"`
	Unauthenticated bool   `key:"allowUnauthenticated" usage:"answer requests from other machines without authentication"`
	OpenMetrics     bool   `key:"openMetrics" usage:"serve /metrics without authentication"`
	Delegated       bool   `key:"delegated" usage:"let a Kubernetes cluster authenticate and authorize requests, such as the one gitfleet runs in"`
	Kubeconfig      string `key:"kubeconfig" usage:"kubeconfig of the cluster that authenticates and authorizes requests, if gitfleet does not run in it"`
	MaxConnections  int    `key:"maxConnections" usage:"how many connections of clients are open at the same time; those without a request are closed first"`
}

// SourceConfig configures the repository of the hub.
type SourceConfig struct {
	URL      string          `key:"url" usage:"repository: https://…, ssh://…, user@host:path"`
	Branch   string          `key:"branch" usage:"branch to follow; the remote's default branch if no reference is set"`
	Tag      string          `key:"tag" usage:"tag to follow"`
	SemVer   string          `key:"semver" usage:"range of tags to follow, such as \">=1.2 <2\": the highest in it"`
	Commit   string          `key:"commit" usage:"commit to stay at, by its whole hash"`
	Path     string          `key:"path" usage:"directory of the repository that is the hub"`
	Interval metav1.Duration `key:"interval" usage:"time between two polls"`

	TokenFile         string `key:"tokenFile" usage:"file with an access token for the repository"`
	TokenEnv          string `key:"tokenEnv" usage:"environment variable with an access token"`
	BearerFile        string `key:"bearerFile" usage:"file with a token to send as Authorization: Bearer"`
	BearerEnv         string `key:"bearerEnv" usage:"environment variable with such a token"`
	Username          string `key:"username" usage:"user name that goes with the token or password"`
	PasswordFile      string `key:"passwordFile" usage:"file with a password for the repository"`
	PasswordEnv       string `key:"passwordEnv" usage:"environment variable with a password"`
	SSHKeyFile        string `key:"sshKeyFile" usage:"file with a private key for ssh://"`
	SSHKeyEnv         string `key:"sshKeyEnv" usage:"environment variable with a private key"`
	SSHPassphraseFile string `key:"sshPassphraseFile" usage:"file with the passphrase of the private key"`
	SSHPassphraseEnv  string `key:"sshPassphraseEnv" usage:"environment variable with the passphrase"`
	SSHKnownHosts     string `key:"sshKnownHosts" usage:"known_hosts file with the key of the Git server; required for ssh://"`
	CABundle          string `key:"caBundle" usage:"PEM file of certificates to trust for https://, beside the system's"`

	GitHubAppID           string `key:"githubAppID" usage:"ID of a GitHub App to authenticate as"`
	GitHubAppInstallation int64  `key:"githubAppInstallation" usage:"ID of the App's installation"`
	GitHubAppKeyFile      string `key:"githubAppKeyFile" usage:"file with the App's private key"`
	GitHubAppKeyEnv       string `key:"githubAppKeyEnv" usage:"environment variable with the App's private key"`
	GitHubAppAPIURL       string `key:"githubAppAPIURL" usage:"API of GitHub Enterprise Server, https://HOST/api/v3"`

	AllowHTTP bool `key:"allowHTTP" usage:"allow http:// for the repository, where anybody on the network path can change what the fleet runs"`
	AllowFile bool `key:"allowFile" usage:"allow file:// and paths for the repository"`

	Signatures SignaturesConfig `key:"signatures"`
}

// SignaturesConfig configures which signatures commits must have; if nothing is set, they need
// none.
type SignaturesConfig struct {
	OpenPGP        []string     `key:"openPGP" usage:"file of OpenPGP public keys whose signatures are accepted; may be repeated"`
	AllowedSigners string       `key:"allowedSigners" usage:"file of SSH keys whose signatures are accepted, in the format of ssh-keygen"`
	Paths          []signedPath `key:"paths" usage:"who may change files below a path and what these may produce, as PATH=SIGNER,SIGNER;namespaces=NAME;kinds=KIND;placements=NAME;sharedBases=DIR; may be repeated; every signer may change everything if there is none"`
	Since          string       `key:"since" usage:"commit after which everything must be signed"`
	AllowRewrite   bool         `key:"allowRewrite" usage:"accept rewritten history, if its newest commit is signed by somebody who may change all that differs"`

	// present is true if the file sets the field. An empty value must not be treated as if no
	// signatures were required.
	present bool
	// unverified is true if signatures are not verified; what files may produce is limited nevertheless.
	unverified bool
}

// A signedPath says who may change files below a path, and what they may produce. With --set it is
// PATH=SIGNER,SIGNER, and after a semicolon NAME=VALUE,VALUE for each other field.
type signedPath struct {
	Path        string   `key:"path"`
	Signers     []string `key:"signers"`
	Namespaces  []string `key:"namespaces"`
	Kinds       []string `key:"kinds"`
	Placements  []string `key:"placements"`
	SharedBases []string `key:"sharedBases"`
}

// A hostAccess is how a server other than that of the repository is accessed. With --set it is HOST, and after a semicolon
// NAME=VALUE for each other field.
type hostAccess struct {
	Host          string `key:"host"`
	Username      string `key:"username"`
	PasswordFile  string `key:"passwordFile"`
	PasswordEnv   string `key:"passwordEnv"`
	TokenFile     string `key:"tokenFile"`
	TokenEnv      string `key:"tokenEnv"`
	BearerFile    string `key:"bearerFile"`
	BearerEnv     string `key:"bearerEnv"`
	SSHKeyFile    string `key:"sshKeyFile"`
	SSHKnownHosts string `key:"sshKnownHosts"`
	CABundle      string `key:"caBundle"`
	PlainHTTP     bool   `key:"plainHTTP"`
}

// auth returns the credentials of the server.
func (h hostAccess) auth() remote.Auth {
	return remote.Auth{
		Token: secret(h.TokenFile, h.TokenEnv), Bearer: secret(h.BearerFile, h.BearerEnv), Username: h.Username, Password: secret(h.PasswordFile, h.PasswordEnv),
		CABundle: h.CABundle, SSH: remote.SSH{Key: secret(h.SSHKeyFile, ""), KnownHosts: h.SSHKnownHosts},
	}
}

// parseHostAccess parses the form of --set.
func parseHostAccess(text string) (h hostAccess, ok bool) {
	ok = parseFields(text, "host", &h)
	return h, ok
}

// parseSignedPath parses the form of --set.
func parseSignedPath(text string) (p signedPath, ok bool) {
	main, rest, _ := strings.Cut(text, ";")
	path, signers, ok := strings.Cut(main, "=")
	p.Path, p.Signers = path, strings.Split(signers, ",")
	ok = ok && signers != ""
	for rest != "" {
		var field string
		field, rest, _ = strings.Cut(rest, ";")
		name, values, _ := strings.Cut(field, "=")
		to, known := fieldOf(reflect.ValueOf(&p).Elem(), name)
		if ok = ok && known && name != "path" && name != "signers" && values != ""; !ok {
			return p, false
		}
		to.Set(reflect.ValueOf(strings.Split(values, ",")))
	}
	return p, ok
}

// DecryptionConfig configures the keys for what SOPS has encrypted in the repository. Without one nothing is decrypted.
type DecryptionConfig struct {
	KeyFile string   `key:"keyFile" usage:"file with age identities or OpenPGP private keys without passphrases, or a directory of such files, that decrypts what SOPS has encrypted"`
	KeyEnv  string   `key:"keyEnv" usage:"environment variable with age identities or an OpenPGP private key"`
	Service string   `key:"service" usage:"address of a sops keyservice, unix:///PATH or HOST:PORT of this machine or pod, that decrypts with AWS KMS, Google Cloud KMS, Azure Key Vault or Vault"`
	Paths   []string `key:"paths" usage:"which files of the directory keyFile decrypt the files below a path of the repository, as PATH=FILE,FILE; may be repeated; other files are decrypted with the files that no path names"`
}

// WebhookConfig configures the secret with which the forge signs webhooks. Without one,
// /webhook is not served.
type WebhookConfig struct {
	SecretFile string `key:"secretFile" usage:"file with the secret of the forge's webhook; it enables /webhook, so that a push is noticed at once"`
	SecretEnv  string `key:"secretEnv" usage:"environment variable with the secret of the webhook"`
}

// LimitsConfig limits what a repository may cost: the first fields limit a fetch, and the
// others the content of a commit.
type LimitsConfig struct {
	FetchBytes   size            `key:"fetchBytes" usage:"how much one poll may receive"`
	FetchObjects int             `key:"fetchObjects" usage:"Git objects that one fetch may bring"`
	FetchTime    metav1.Duration `key:"fetchTime" usage:"how long one poll may take altogether"`
	ListTime     metav1.Duration `key:"listTime" usage:"how long the listing of references may take"`
	ObjectBytes  size            `key:"objectBytes" usage:"largest Git object that is rebuilt from a difference"`
	Unpacked     size            `key:"unpackedBytes" usage:"how much the Git objects of one fetch may take together when they are unpacked"`
	Packs        int             `key:"packs" usage:"pack files of the local clone before they are joined"`

	Files          int             `key:"files" usage:"files and directories below the path"`
	FileSize       size            `key:"fileSize" usage:"size of each file that is read"`
	Documents      int             `key:"documents" usage:"YAML documents in one file"`
	AliasExpansion int             `key:"aliasExpansion" usage:"how many times larger a document may become by its YAML aliases"`
	Depth          int             `key:"depth" usage:"nesting of a document, and of directories"`
	Objects        int             `key:"objects" usage:"objects in one commit"`
	CommitSize     size            `key:"commitSize" usage:"how much memory the objects of one commit may take"`
	Builds         int             `key:"builds" usage:"kustomizations that are built in one commit"`
	BuildInput     size            `key:"buildInput" usage:"how much memory the files may take that one kustomization reads, each as often as it is read"`
	BuildTime      metav1.Duration `key:"buildTime" usage:"how long the build of one kustomization, or the rendering of one chart, may take"`
	BuildOutput    size            `key:"buildOutput" usage:"size of the output of one kustomization"`
}

// MembersConfig configures the access to member clusters.
type MembersConfig struct {
	KubeconfigDir   string          `key:"kubeconfigDir" usage:"directory with a file NAME.kubeconfig for each member"`
	Kubeconfig      string          `key:"kubeconfig" usage:"kubeconfig with a context for each member"`
	SecretNamespace string          `key:"secretNamespace" usage:"in a cluster: namespace with a Secret NAME-kubeconfig for each member"`
	AllowExec       bool            `key:"allowKubeconfigExec" usage:"allow kubeconfigs that run a program"`
	AllowInsecure   bool            `key:"allowInsecureKubeconfig" usage:"allow kubeconfigs that do not check the server's certificate"`
	Concurrency     int             `key:"concurrency" usage:"writes in flight to one member"`
	MaxRequests     int             `key:"maxRequests" usage:"writes in flight to all members together; as many members are connected to at a time; fewer while the CPUs are busy"`
	Timeout         metav1.Duration `key:"timeout" usage:"longest time for one request to a member"`
	ProbeInterval   metav1.Duration `key:"probeInterval" usage:"time between two probes of a member; longer with more than 500 members, up to 4 min"`
	SweepInterval   metav1.Duration `key:"sweepInterval" zero:"off" usage:"time between two full reads of gitfleet's objects on a member, which find changes that watches have missed; 0 for none"`
	DeletePercent   int             `key:"deletePercent" usage:"block deletions that are more than this share of what gitfleet has on a member, in percent"`
	DeleteObjects   int             `key:"deleteObjects" usage:"never block deletions of no more than so many objects"`
}

// Sweep returns the interval for member.Config, where zero means the default.
func (m *MembersConfig) Sweep() time.Duration {
	if m.SweepInterval.Duration == 0 {
		return -1
	}
	return m.SweepInterval.Duration
}

// DeletionLimit returns the limit above which deletions on a member are blocked.
func (m *MembersConfig) DeletionLimit() member.DeletionLimit {
	return member.DeletionLimit{Percent: m.DeletePercent, Objects: m.DeleteObjects}
}

// StatusConfig configures the form of the status.
type StatusConfig struct {
	Conditions string `key:"conditions" usage:"names of conditions: current, or documented for those of the public documentation beside them"`
}

// RolloutConfig applies to every rollout.
type RolloutConfig struct {
	MaxUnreachable    portion         `key:"maxUnreachable" usage:"how many unreachable clusters a rollout does not wait for: a number, or a percentage of the clusters that a placement asks for"`
	AvailableTimeout  metav1.Duration `key:"availableTimeout" zero:"off" usage:"how long a cluster may take to become available before its update counts as failed; 0 for any time"`
	PodFailureTimeout metav1.Duration `key:"podFailureTimeout" usage:"how long the pods of a workload may be unable to start before it counts as failed"`
	RepairAfter       metav1.Duration `key:"repairAfter" usage:"how long a cluster has to be unavailable, for no reason of gitfleet's, before it is updated outside of the budget"`
	Approvals         string          `key:"approvals" usage:"how stages of staged update runs may be approved: any way, or by commits only, with git"`
}

// How stages of staged update runs may be approved.
const (
	approvalsAny = "any"
	approvalsGit = "git"
)

// InGit reports whether only commits approve stages.
func (c RolloutConfig) InGit() bool { return c.Approvals == approvalsGit }

// DriftConfig configures how drift on members is handled.
type DriftConfig struct {
	Mode        string          `key:"mode" usage:"what is done about drift: revert corrects it, propose leaves it and opens a pull request, report leaves it"`
	Kinds       KindModes       `key:"kinds" usage:"drift modes of kinds, as a mapping of KIND or GROUP/KIND to the mode, such as Secret: revert; with --set as KIND=MODE, may be repeated"`
	Additions   string          `key:"additions" usage:"what is done about what others add beside what a manifest sets, such as a container or a label: report shows it as drift, propose also opens a pull request, ignore does not look for it"`
	MinAge      metav1.Duration `key:"minAge" usage:"how long a change has to last before it is offered as a pull request"`
	MaxOpen     int             `key:"maxOpen" usage:"how many pull requests and issues of drifts are open at once"`
	Group       string          `key:"group" usage:"what one pull request of drift has: change for one change each, placement for all changes of a placement"`
	ExpireAfter metav1.Duration `key:"expireAfter" zero:"off" usage:"how long a pull request or issue of drift waits for a decision before it is closed; the object then stays as it is and is reported; 0 for any time"`
	Reviewers   []string        `key:"reviewers" usage:"users, and teams as ORGANIZATION/TEAM, whose reviews of pull requests of drift are requested, besides the owners of the changed files in CODEOWNERS; may be repeated"`
}

// KindModes are drift modes by KIND or GROUP/KIND.
type KindModes map[string]driftMode

type driftMode string

// The drift modes.
const (
	revertDrift  = string(api.DriftRevert)
	proposeDrift = string(api.DriftPropose)
	reportDrift  = string(api.DriftReport)
)

// What one pull request of drift has.
const (
	groupChange    = "change"
	groupPlacement = "placement"
)

// ByPlacement reports whether a pull request has all drift of a placement.
func (d *DriftConfig) ByPlacement() bool { return d.Group == groupPlacement }

// proposes reports whether drift is offered as pull requests, at least for some kinds.
func (d *DriftConfig) proposes() bool {
	return d.Mode == proposeDrift || d.Additions == string(api.AdditionsPropose) || slices.Contains(slices.Collect(maps.Values(d.Kinds)), driftMode(proposeDrift))
}

// AsksForge reports whether the daemon uses pull requests.
func (c Config) AsksForge() bool { return c.Drift.proposes() || c.Forge.Type != "" }

// PullRequestsConfig configures plans and statuses on the forge.
type PullRequestsConfig struct {
	Plans         bool   `key:"plans" usage:"write the plan of each open pull request into a comment and the commit status gitfleet/plan, or gitfleet/NAME/plan with fleetName"`
	DryRun        bool   `key:"dryRun" usage:"with plans, check the objects by a server-side dry run on some of the members; not for pull requests of forks"`
	RolloutStatus bool   `key:"rolloutStatus" usage:"show on the commits of the branch how far they are rolled out, as the commit status gitfleet/rollout, or gitfleet/NAME/rollout with fleetName"`
	ForksLabel    string `key:"forksLabel" usage:"label by which a maintainer requests the plan of the newest commit of a fork's pull request, removed after another push; without it, and on Gitea, forks get no plan"`
}

// Enabled reports whether the daemon writes anything about pull requests or commits to the forge.
func (p *PullRequestsConfig) Enabled() bool { return p.Plans || p.RolloutStatus }

// ForgeConfig configures the forge on which pull requests are opened.
type ForgeConfig struct {
	Type           string          `key:"type" usage:"type of the forge: gitea (also Forgejo), github or gitlab; detected for github.com, ghe.com and gitlab.com"`
	URL            string          `key:"url" usage:"URL of the forge, such as https://git.example.com; by default derived from source.url if that is https://"`
	Repository     string          `key:"repository" usage:"repository as OWNER/NAME, on GitLab also GROUP/SUBGROUP/NAME; by default derived from source.url if that is https://"`
	TokenFile      string          `key:"tokenFile" usage:"file with an access token that may write to the repository, its pull requests and its issues"`
	TokenEnv       string          `key:"tokenEnv" usage:"environment variable with such a token"`
	SigningKeyFile string          `key:"signingKeyFile" usage:"file with an OpenPGP or SSH private key, without a passphrase, that signs the commits of pull requests"`
	Interval       metav1.Duration `key:"interval" usage:"time between two polls of the open pull requests"`
}

// HistoryConfig limits the history.
type HistoryConfig struct {
	MaxSize size `key:"maxSize" usage:"maximum size of the history in the state directory; the oldest entries are removed first"`
}

// HighAvailabilityConfig configures replicas that share a ledger. Without the name of a lease there
// is one replica, with the ledger in its state directory.
type HighAvailabilityConfig struct {
	Lease      LeaseConfig `key:"lease"`
	Kubeconfig string      `key:"kubeconfig" usage:"kubeconfig of the cluster with the Lease, if it is not the one that gitfleet runs in"`
}

// LeaseConfig names the Lease that says which replica leads.
type LeaseConfig struct {
	Name      string `key:"name" usage:"name of the Lease by which several replicas elect a leader; with it the ledger is kept in Secrets of the same namespace"`
	Namespace string `key:"namespace" usage:"namespace of the Lease and of the Secrets"`
}

// Default returns the configuration without a file and flags.
func Default() Config {
	return Config{
		StateDir: "/var/lib/gitfleet",
		Listen:   "127.0.0.1:8085",
		LogLevel: "info", LogFormat: logText,
		Server: ServerConfig{MaxConnections: server.MostConnections},
		Source: SourceConfig{Path: ".", Interval: Seconds(30)},
		Limits: LimitsConfig{
			FetchBytes: 512 << 20, FetchObjects: 5_000_000, FetchTime: Seconds(600), ListTime: Seconds(30), ObjectBytes: 128 << 20, Unpacked: 16 << 30, Packs: 50,
			Files: 50_000, FileSize: 4 << 20, Documents: 1_000, AliasExpansion: 100, Depth: 100, Objects: 100_000,
			CommitSize: 512 << 20, Builds: 5_000, BuildInput: 64 << 20, BuildTime: Seconds(60), BuildOutput: 10 << 20,
		},
		Members: MembersConfig{
			Concurrency: 8, MaxRequests: 128, Timeout: Seconds(30), ProbeInterval: Seconds(10), SweepInterval: Seconds(6 * 3600),
			DeletePercent: 30, DeleteObjects: 10,
		},
		Rollout: RolloutConfig{
			MaxUnreachable: portion{intstr.FromString("100%")}, AvailableTimeout: Seconds(600), PodFailureTimeout: Seconds(30), RepairAfter: Seconds(30),
			Approvals: approvalsAny,
		},
		Drift:   DriftConfig{Mode: revertDrift, Additions: string(api.AdditionsReport), MinAge: Seconds(120), MaxOpen: 10, Group: groupChange},
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

// GatesConfig configures what gates of staged runs may ask. Without servers, no gate may ask one.
type GatesConfig struct {
	Servers []gateServer `key:"servers" usage:"servers that gates of staged runs may ask, as URL;bearerFile=FILE; what is below the path of the URL may be asked; may be repeated"`
}

// A gateServer is a server that gates may ask. With --set it is URL, and after a semicolon NAME=VALUE for each other field.
type gateServer struct {
	URL          string `key:"url"`
	Username     string `key:"username"`
	PasswordFile string `key:"passwordFile"`
	PasswordEnv  string `key:"passwordEnv"`
	BearerFile   string `key:"bearerFile"`
	BearerEnv    string `key:"bearerEnv"`
	CABundle     string `key:"caBundle"`
	CertFile     string `key:"certFile"`
	KeyFile      string `key:"keyFile"`
}

// parseGateServer parses the form of --set.
func parseGateServer(text string) (s gateServer, ok bool) {
	ok = parseFields(text, "url", &s)
	return s, ok
}

func secret(file, env string) remote.SecretSource {
	return remote.SecretSource{File: file, Env: env}
}
