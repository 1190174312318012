"""The judge's parts. Read `contract` first: its words are used by all the others.

Asking: `command` (the command line), `request`, `verbs` (one function a verb), `classroom` (what a teacher asks),
`words` (what is said, in both languages), `learner` (their files), `progress`, `submissions`, `safe_files`, `problems`.

Grading: `grade` (from cases to a verdict), `runner` (cases played in child processes), `budget` (what is left of the
limits), `play` (what is called, and what is right), `explain` (what a failing learner gets): `shrink` to the smallest
case, `story`, `diagnose`.

Showing: `report` (a page, or data), `layout` (what a page consists of), `terminal`, `rich_terminal`, `html`,
`case_text` (a case as the calls that it makes), `progress_bar`.

Isolation: `process` starts a child, which runs `child` inside `sandbox`, behind the filter of `seccomp`; `protocol` and
`pipes` carry calls and replies; `ending` and `apart` are about the judge's own processes; `strays`, `windows_job` and
`affinity` are for single systems; `doctor` tries it all.

The author's: `verify`, with the solutions of `catalogue` and `hostile`, and `margins`.
"""
