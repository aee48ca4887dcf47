"""What a job does: calls of the library that take plain documents and give plain documents, run in a process apart."""

# Which module knows how to do which task. Nothing else can be asked for.
TASKS = {
    "open_file": "discreet.app.work.bench",
    "live_figures": "discreet.app.work.measuring",
    "assess_file": "discreet.app.work.measuring",
    "suggest_plan": "discreet.app.work.protecting",
    "try_steps": "discreet.app.work.protecting",
    "preview_step": "discreet.app.work.protecting",
    "compare_release": "discreet.app.work.releasing",
    "write_release": "discreet.app.work.releasing",
    "look_before": "discreet.app.work.releasing",
    "make_copies": "discreet.app.work.releasing",
    "protect_table": "discreet.app.work.tabulating",
    "check_outputs": "discreet.app.work.checking",
    "decide_output": "discreet.app.work.checking",
    "show_budget": "discreet.app.work.bench",
    "open_budget": "discreet.app.work.bench",
}
