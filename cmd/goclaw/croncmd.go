package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goclaw"
	"goclaw/internal/edge/client"
	"goclaw/internal/runtime/gateway"
)

func (c *cli) cronCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cron", Short: "What the agent does by the clock",
		Long: "Adds, shows, changes and fires the jobs that the agent does by the clock. Jobs fire while a\n" +
			"gateway or a chat runs; what was missed is made up for or skipped, as each job says.",
	}
	group(cmd)
	cmd.AddCommand(c.addJob(), c.editJob(), c.listJobs(), c.showJob(), c.jobHistory(), c.fireJob(), c.removeJob(),
		c.switchJob("pause", "Keep a job from firing by the clock", "Paused", (*client.Client).PauseCronJob),
		c.switchJob("resume", "Let a paused job fire again", "Fires again", (*client.Client).ResumeCronJob))
	return cmd
}

// jobFlags are the flags that say what a job is.
type jobFlags struct {
	name, at, every, cron, zone, session, model, thinking, definition, missed, agent string

	timeout        int
	usd            float64
	tokens         int64
	isolated, main bool
	silent, paused bool
}

func (j *jobFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&j.name, "name", "", "what people call it")
	f.StringVar(&j.at, "at", "", `once: a TIME such as "2026-03-01 09:00" or 20m from now`)
	f.StringVar(&j.every, "every", "", "in equal steps, such as 30m, 2h or 1d")
	f.StringVar(&j.cron, "cron", "", `a cron expression, such as "0 7 * * 1-5"`)
	f.StringVar(&j.zone, "tz", "", "time ZONE of --cron and --at, such as Europe/Berlin (default: yours)")
	f.BoolVar(&j.isolated, "isolated", false, "a run of its own, with no history (default)")
	f.BoolVar(&j.main, "main", false, "a turn of the session")
	f.StringVar(&j.session, "deliver", "", "KEY of the session whose turn it is, or that is told the result (default: the agent's main session)")
	f.BoolVar(&j.silent, "no-deliver", false, "nobody is told the result, it is only on record")
	f.StringVar(&j.model, "model", "", "provider/model or an alias")
	f.StringVar(&j.thinking, "thinking", "", "off, low, medium or high")
	f.StringVar(&j.definition, "agent-definition", "", "NAME of the definition by which it works (isolated)")
	f.IntVar(&j.timeout, "timeout", 0, "end a run after this many seconds, 0 for none (isolated)")
	f.Float64Var(&j.usd, "budget-usd", 0, "what one firing may cost, in dollars")
	f.Int64Var(&j.tokens, "budget-tokens", 0, "tokens that one firing may spend")
	f.StringVar(&j.missed, "missed", "", "once or skip: what becomes of due times at which nothing ran (default once)")
	complete(cmd, "thinking", "off", "low", "medium", "high")
	complete(cmd, "missed", "once", "skip")
}

// checkOne refuses flags of which a job takes one.
func checkOne(f *pflag.FlagSet, names ...string) error {
	var given []string
	for _, name := range names {
		if f.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) > 1 {
		return usagef("%s can't be given together; choose one", strings.Join(given, " and "))
	}
	return nil
}

// edit is what the flags that were given say.
func (j *jobFlags) edit(f *pflag.FlagSet) (e goclaw.CronEdit, err error) {
	err = errors.Join(checkOne(f, "at", "every", "cron"), checkOne(f, "isolated", "main"), checkOne(f, "deliver", "no-deliver"))
	if err != nil {
		return e, err
	}
	for name, to := range map[string]struct {
		value *string
		field **string
	}{
		"name": {&j.name, &e.Name}, "at": {&j.at, &e.At}, "every": {&j.every, &e.Every}, "cron": {&j.cron, &e.Cron},
		"tz": {&j.zone, &e.Timezone}, "model": {&j.model, &e.Model}, "thinking": {&j.thinking, &e.Thinking},
		"agent-definition": {&j.definition, &e.Definition}, "agent": {&j.agent, &e.Agent},
	} {
		if f.Changed(name) {
			*to.field = to.value
		}
	}
	if f.Changed("missed") {
		missed := goclaw.MissedPolicy(j.missed)
		e.Missed = &missed
	}
	if f.Changed("timeout") {
		e.TimeoutSeconds = &j.timeout
	}
	if f.Changed("budget-usd") || f.Changed("budget-tokens") {
		e.Budget = &goclaw.Limits{USD: j.usd, Tokens: j.tokens}
	}
	for flag, target := range map[string]goclaw.CronTarget{"isolated": goclaw.TargetIsolated, "main": goclaw.TargetMain} {
		if f.Changed(flag) {
			e.Target = &target
		}
	}
	var key goclaw.SessionKey
	if f.Changed("deliver") {
		if key, err = goclaw.ParseSessionKey(j.session); err != nil {
			return e, usagef("--deliver: %v", err)
		}
	}
	if f.Changed("deliver") || j.silent {
		e.Session = &key
	}
	return e, nil
}

func (c *cli) addJob() *cobra.Command {
	var flags jobFlags
	cmd := &cobra.Command{
		Use: "add MESSAGE", Short: "Add a job", Args: one("MESSAGE", "what the agent is to do; - reads it from standard input"),
		Example: `  goclaw cron add --name "Morning" --cron "0 7 * * 1-5" --tz Europe/Berlin "Summarise my notes of yesterday"
  goclaw cron add --name "Tea" --at 20m --main "Remind me that the tea is ready"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := flags.edit(cmd.Flags())
			if err != nil {
				return err
			}
			if e.Message, err = c.jobMessage(args[0]); err != nil {
				return err
			}
			if e.Enabled = new(bool); !flags.paused {
				*e.Enabled = true
			}
			return c.keeping(cmd.Context(), "", func(ctx context.Context, l link) (goclaw.CronReport, error) { return l.AddCronJob(ctx, e) })
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&flags.agent, "agent", "", "ID of the agent whose job it is (default: main)")
	cmd.Flags().BoolVar(&flags.paused, "disabled", false, "it does not fire by the clock yet")
	return cmd
}

func (c *cli) editJob() *cobra.Command {
	var flags jobFlags
	var message string
	cmd := &cobra.Command{
		Use: "edit ID", Short: "Change a job", Args: oneJob(), ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Changes what the flags say of a job; the rest stays.",
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := flags.edit(cmd.Flags())
			if err == nil && cmd.Flags().Changed("message") {
				e.Message, err = c.jobMessage(message)
			}
			if err != nil {
				return err
			}
			if e == (goclaw.CronEdit{}) {
				return usagef("nothing to change: give a flag, such as --every 2h")
			}
			return c.keeping(cmd.Context(), args[0], func(ctx context.Context, l link) (goclaw.CronReport, error) {
				return l.ChangeCronJob(ctx, args[0], e)
			})
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&message, "message", "", "TEXT that says what the agent is to do; - reads it from standard input")
	return cmd
}

func (c *cli) jobMessage(arg string) (*string, error) {
	if arg != "-" {
		return &arg, nil
	}
	b, err := io.ReadAll(c.Stdin)
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	text := strings.TrimSpace(string(b))
	return &text, nil
}

// keeping makes a change to the crontab and shows the job.
func (c *cli) keeping(ctx context.Context, id string, do func(context.Context, link) (goclaw.CronReport, error)) error {
	return c.settling(ctx, func(ctx context.Context, l link) error {
		job, err := do(ctx, l)
		if err != nil {
			return noJob(err, id)
		}
		c.tellAlone(l, "jobs fire")
		return c.print(job, func() string { return gateway.CronDetails(job, time.Local) })
	})
}

func (c *cli) switchJob(name, short, done string, do func(*client.Client, context.Context, string) (goclaw.CronReport, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID", Short: short, Args: oneJob(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.settling(cmd.Context(), func(ctx context.Context, l link) error {
				job, err := do(l.Client, ctx, args[0])
				if err != nil {
					return noJob(err, args[0])
				}
				return c.print(job, func() string { return done + ": " + job.Name })
			})
		},
	}
}

func (c *cli) listJobs() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the jobs", Args: no,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				jobs, err := l.CronJobs(ctx)
				if err != nil {
					return err
				}
				if len(jobs) > 0 {
					c.tellAlone(l, "jobs fire")
				}
				return c.print(jobs, func() string { return gateway.CronTable(jobs, time.Local) })
			})
		},
	}
}

func (c *cli) showJob() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one job", Args: oneJob(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				job, err := l.CronJob(ctx, args[0])
				if err != nil {
					return noJob(err, args[0])
				}
				return c.print(job, func() string { return gateway.CronDetails(job, time.Local) })
			})
		},
	}
}

func (c *cli) jobHistory() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history ID", Short: "List what became of a job's due times, newest first", Args: oneJob(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usagef("--limit %d: want 1 or more", limit)
			}
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				firings, err := l.CronHistory(ctx, args[0], limit)
				if err != nil {
					return noJob(err, args[0])
				}
				return c.print(firings, func() string { return gateway.FiringTable(firings, time.Local) })
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, "list at most N of them")
	return cmd
}

func (c *cli) fireJob() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use: "run ID", Short: "Fire a job by hand", Args: oneJob(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.startRun(cmd.Context(), goclaw.SessionKey{}, wait, func(l link) (goclaw.SpawnReply, error) {
				run, err := l.RunCronJob(cmd.Context(), args[0])
				return goclaw.SpawnReply{Status: "accepted", RunID: run.ID, SessionKey: run.Session.String()}, noJob(err, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "stay until it has ended, and print its result")
	return cmd
}

func (c *cli) removeJob() *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "Remove a job; its history stays", Aliases: []string{"remove"}, Args: oneJob(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.settling(cmd.Context(), func(ctx context.Context, l link) error {
				if err := l.RemoveCronJob(ctx, args[0]); err != nil {
					return noJob(err, args[0])
				}
				return c.print(map[string]string{"removed": args[0]}, func() string { return "Removed: " + args[0] })
			})
		},
	}
}

func oneJob() cobra.PositionalArgs { return one("ID", "goclaw cron list lists the jobs") }

// noJob says which job was not found, and where to find others.
func noJob(err error, id string) error {
	if errors.Is(err, goclaw.ErrNotFound) && id != "" {
		return fmt.Errorf("there is no job %q; goclaw cron list lists them", id)
	}
	return err
}
