"""Every sentence that the judge says, in English and Chinese."""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping

LANGUAGES = ("en", "zh")

# The verdicts' words stand beside their letters everywhere.
WORDS: dict[str, tuple[str, str]] = {
    "AC": ("accepted", "通过"),
    "WA": ("wrong answer", "答案错误"),
    "RTE": ("an exception", "运行时异常"),
    "TLE": ("too slow", "超时"),
    "MLE": ("too much memory", "内存超限"),
    "OLE": ("too much output", "输出超限"),
    "CE": ("cannot be run", "无法运行"),
    "UNATTEMPTED": ("still the starter", "还没动手"),
    "IE": ("the judge's own fault", "判题器自身出错"),
    "easy": ("easy", "简单"),
    "medium": ("medium", "中等"),
    "hard": ("hard", "困难"),
    # the report
    "points": ("{points} of {of} points", "{points} / {of} 分"),
    "group": ("tests", "考查"),
    "group_points": ("points", "得分"),
    "group_cases": ("cases passed", "通过的用例"),
    "not_run": (
        "Not run, and marked –: these come once the examples of the statement pass.",
        "标 – 的没有运行：题目里的例子全都通过以后，才轮到它们。",
    ),
    "story": ("What went wrong", "错在哪里"),
    "story_case": ("In the case “{case}”.", "出错的用例：“{case}”。"),
    "story_shrunk": (
        "In the case “{case}”, made as small as it still fails (calls left out: {left_out}).",
        "出错的用例：“{case}”，已经缩到仍会出错的最小样子（省去的调用：{left_out} 次）。",
    ),
    "story_cut": ("... {count} calls ...", "……{count} 次调用……"),
    "story_constructor": ("The object could not be made.", "对象没能创建出来。"),
    "story_expected": ("expected", "应当返回"),
    "story_got": ("your solution returned", "你的返回值"),
    "story_types": (
        "The types differ: {expected} is due, and {got} came. Values are compared type by type.",
        "类型不同：应为 {expected}，得到的是 {got}。判题器连类型一起比较。",
    ),
    "story_nothing": ("nothing", "没有返回"),
    "state_before": ("before the call", "调用之前"),
    "state_after": ("after it", "调用之后"),
    "state_when": ("{title}, {when}", "{title}，{when}"),
    "state": ("The rules' own state, not your object's", "规则自己的状态（不是你的对象的）"),
    "story_detail": ("What happened:", "发生了什么："),
    "diagnosis_link": ("It is explained in ", "讲解见 "),
    "lines_cut": ("... {count} lines ...", "……{count} 行……"),
    "printed": ("Your code printed", "你的代码打印了"),
    "replay": ("To play this again", "重放这一段"),
    "replay_note": (
        "It fails only after the cases before it: something is shared between objects, in the class or the module.",
        "它只在前面的用例之后才失败：有什么东西在对象之间共享了，可能在类里，也可能在模块里。",
    ),
    "showcase": ("For interest, not graded", "仅供参考，不计分"),
    "replay_group": ("one case played again", "单独重放的一个用例"),
    "earlier_kept": ("Your earlier, different solution is kept as {path}.", "之前那份不同的答案另存为 {path}。"),
    # what to do next
    "next_hint": ("Stuck? A hint: {command} hint {number}", "卡住了？看一条提示：{command} hint {number}"),
    "next_open": (
        "Write your solution in {path}, then: {command} {number}",
        "在 {path} 里写你的答案，然后：{command} {number}",
    ),
    "next_cell": ("Write your solution in the cell, and run it again.", "在这个单元格里写你的答案，再运行一次。"),
    "next_passed": (
        "Compare with the reference: {command} solution {number}. The next problem: {command} next",
        "对照参考答案：{command} solution {number}。下一题：{command} next",
    ),
    "next_report": (
        "This is no fault of your code. Please report it with this text.",
        "这不是你的代码的错。请带上这段文字报告给我们。",
    ),
    # the list
    "number": ("nr", "题号"),
    "problem": ("problem", "题目"),
    "difficulty": ("difficulty", "难度"),
    "chapter": ("chapter", "章节"),
    "best": ("best", "最好成绩"),
    "verdict": ("verdict", "判定"),
    "never": ("not tried", "没做过"),
    "passed": ("passed", "已通过"),
    "list_next": (
        "Next: {command} show {number}, then {command} {number}",
        "下一步：{command} show {number}，然后 {command} {number}",
    ),
    "list_done": ("You have passed every problem.", "所有题目都通过了。"),
    "made": ("Made from the starter: {path}", "已用起始代码建好：{path}"),
    "progress_lost": (
        "{path} could not be read, so the scores start anew; it is kept beside the new one when that is written.",
        "{path} 读不出来，成绩从头记起；写新文件时会把它另外保存。",
    ),
    "progress_unsaved": ("The score could not be saved: {detail}", "成绩没能保存：{detail}"),
    # hints, solution, reset, watch
    "hint_title": ("Hint {hint} of {of}", "提示 {hint} / {of}"),
    "hint_more": ("One more: {command} hint {number}", "再看一条：{command} hint {number}"),
    "hint_last": ("That was the last hint.", "这是最后一条提示。"),
    "hint_order": (
        "Hints come one at a time: hint {hint} follows after hint {seen}. Look at that first: {command} hint {number}",
        "提示一次一条：第 {hint} 条要等看过第 {seen} 条。先看：{command} hint {number}",
    ),
    "hint_range": (
        "there are {of} hints, from 1 to {of}; {given} is none of them.",
        "提示有 {of} 条，从 1 到 {of}；没有 {given}。",
    ),
    "solution_locked": (
        "The reference opens after a pass. To see it now all the same: {command} solution {number} --spoil",
        "通过之后才能看参考答案。现在就想看：{command} solution {number} --spoil",
    ),
    "reset_done": ("{path} is the starter again.", "{path} 又是起始代码了。"),
    "watching": ("Watching {path}; Ctrl-C ends it.", "正在盯着 {path}；按 Ctrl-C 结束。"),
    # a class
    "submission": ("file", "文件"),
    "failed_groups": ("groups failed", "没过的组"),
    "misconception": ("misconception", "误解"),
    "learners": ("learners", "人数"),
    "class_report": ("Class report", "全班情况"),
    "class_none": ("No known misconception was recognised.", "没有认出已知的误解。"),
    "class_unknown": ("failed, no known misconception", "没通过，也不是已知的误解"),
    "class_csv": ("The table as CSV: {path}", "表格另存为 CSV：{path}"),
    "class_csv_failed": ("The CSV could not be written: {detail}", "CSV 没能写出来：{detail}"),
    "class_empty": ("there is no .py or .ipynb file in {path}.", "{path} 里没有 .py 或 .ipynb 文件。"),
    "class_no_folder": (
        "{path} is no folder; give the folder that holds the submissions.",
        "{path} 不是文件夹；请给出放答案的文件夹。",
    ),
    "unreadable": ("could not be read: {detail}", "读不了：{detail}"),
    "link_outside": (
        "this is a link to somewhere outside the folder, which is not followed",
        "这是指向文件夹之外的链接，不会跟随",
    ),
    "notebook_too_large": ("the notebook has more than 32 MiB", "笔记本超过 32 MiB"),
    "notebook_broken": ("this is no notebook that can be read", "这不是能读的笔记本"),
    "notebook_without_cell": (
        "the notebook has no cell that starts with %%judge {number}",
        "笔记本里没有以 %%judge {number} 开头的单元格",
    ),
    # doctor
    "protection": ("protection", "保护"),
    "active": ("active", "生效"),
    "inactive": ("NOT active", "没有生效"),
    "finding": ("what the attempt met", "尝试的结果"),
    "doctor_title": ("What keeps a submission inside its box on this machine", "这台机器上有什么把答案关在沙箱里"),
    # verify
    "verified": ("All {count} solutions got the verdict they should.", "{count} 份答案都得到了应有的判定。"),
    # usage
    "usage": (
        """\
Grades your solutions of the course's problems.

    {command}                    the problems, your best scores, the next step
    {command} 131                grade practice/solutions/131.py
    {command} 131 FILE           grade another file; - is standard input
    {command} show 131           the statement
    {command} hint 131 [N]       hints, one more at a time
    {command} watch 131          grade again at every save
    {command} solution 131       the reference, after a pass (or --spoil)
    {command} reset 131          the starter again; your file is kept
    {command} all                grade everything
    {command} next               grade the first problem not yet passed
    {command} grade 131 DIR      grade every .py and .ipynb of a class
    {command} verify [131]       check the problems themselves
    {command} doctor             what isolates a submission on this machine

Options
    --json         one JSON object on standard output, nothing else
    --seed N       other random cases, or those of an earlier run; {seed} by default
    --lang zh|en   language; by default that of your system
    --case CALLS   play one case alone: calls as a report shows them, or a case's name
    --no-color     no colour (the variable NO_COLOR says the same)

The exit status is 0 for a pass, 1 for any other verdict, 2 for a wrong command, 3 for a fault of the judge.""",
        """\
给课程里的题目判分。

    {command}                    题目、最好成绩、下一步
    {command} 131                给 practice/solutions/131.py 判分
    {command} 131 FILE           给另一个文件判分；- 表示标准输入
    {command} show 131           看题目
    {command} hint 131 [N]       看提示，一次多一条
    {command} watch 131          每次保存都重新判分
    {command} solution 131       看参考答案，要先通过（或加 --spoil）
    {command} reset 131          换回起始代码，你的文件会保留
    {command} all                全部判分
    {command} next               判第一道还没通过的题
    {command} grade 131 DIR      给全班的 .py 和 .ipynb 判分
    {command} verify [131]       检查题目本身
    {command} doctor             这台机器上有哪些隔离生效

选项
    --json         标准输出上只有一个 JSON 对象
    --seed N       换一批随机用例，或者重现某一次；默认 {seed}
    --lang zh|en   语言；默认随系统
    --case CALLS   只跑一个用例：像报告里那样写的调用，或者用例的名字
    --no-color     不用颜色（环境变量 NO_COLOR 也一样）

退出状态：0 通过；1 其他判定；2 命令用错；3 判题器自身出错。""",
    ),
    "usage_more": ("Run {command} --help for what there is.", "运行 {command} --help 看看都有什么。"),
    "no_stdin": ("standard input is closed, so there is nothing to grade.", "标准输入是关闭的，没有东西可判。"),
    "no_stdout": ("standard output is closed, so there is nowhere to answer.", "标准输出是关闭的，没有地方回答。"),
    "refused": (
        "the system refuses what is needed here: {detail}. See that the place exists, is yours and is not full.",
        "系统不允许这里需要的操作：{detail}。请检查那个位置存在、可写、没有满。",
    ),
    "bad_word": ("“{given}” is no problem and no command.", "“{given}” 既不是题号，也不是命令。"),
    "bad_count": ("{verb} takes {takes}; {count} given.", "{verb} 后面应当是{takes}，这里给了 {count} 个。"),
    "takes_nothing": ("nothing more", "空的"),
    "takes_perhaps_number": ("nothing, or the number of a problem", "空的，或者一个题号"),
    "takes_number": ("the number of a problem", "一个题号"),
    "takes_number_file": ("the number of a problem and perhaps a file", "一个题号，还可以加一个文件"),
    "takes_number_hint": ("the number of a problem and perhaps the number of a hint", "一个题号，还可以加提示的序号"),
    "takes_number_dir": ("the number of a problem and a folder", "一个题号和一个文件夹"),
    "no_number": (
        "“{given}” is no number; problems have numbers, such as {known}.",
        "“{given}” 不是数；题目用数字编号，例如 {known}。",
    ),
    "no_problem": ("there is no problem {given}; there are {known}.", "没有第 {given} 题；现有 {known}。"),
    "no_file": ("there is no file {path}.", "没有文件 {path}。"),
    "no_option": ("there is no option {given}.", "没有选项 {given}。"),
    "no_value": ("{given} needs a value after it.", "{given} 后面要有值。"),
    "bad_seed": ("--seed takes a whole number; “{given}” is none.", "--seed 后面要是整数；“{given}” 不是。"),
    "bad_lang": ("--lang takes zh or en; “{given}” is neither.", "--lang 后面要是 zh 或 en；“{given}” 都不是。"),
    "not_for": ("{option} says nothing to {verb}; leave it out.", "{option} 对 {verb} 没有意义，请去掉。"),
    "case_no_python": ("--case is no Python: {detail}", "--case 里的不是 Python：{detail}"),
    "case_no_call": (
        "in --case, statement {position} is no call: {detail}",
        "--case 的第 {position} 句不是调用：{detail}",
    ),
    "case_not_first": (
        "--case starts with making the object, {expected}; “{detail}” does not.",
        "--case 要从创建对象开始，即 {expected}；“{detail}” 不是。",
    ),
    "case_not_on_object": (
        "in --case, statement {position} calls no method of {variable}: {detail}",
        "--case 的第 {position} 句调用的不是 {variable} 的方法：{detail}",
    ),
    "case_no_method": (
        "in --case, statement {position}: there is no method {detail}.",
        "--case 的第 {position} 句：没有方法 {detail}。",
    ),
    "case_no_value": (
        "in --case, statement {position}: {detail} is neither plain data nor an earlier result.",
        "--case 的第 {position} 句：{detail} 既不是普通的数据，也不是前面的结果。",
    ),
    "case_refused": (
        "the rules refuse statement {position} of --case: {detail}",
        "规则不接受 --case 的第 {position} 句：{detail}",
    ),
    "case_empty": ("--case makes no call on the object.", "--case 没有调用对象的任何方法。"),
    "case_unknown": ("there is no case named “{given}” with this seed.", "这个种子下没有名为 “{given}” 的用例。"),
    "internal": (
        "the judge itself failed: {detail}. It is no fault of your code; please report it.",
        "判题器自身出错：{detail}。这不是你的代码的错，请报告给我们。",
    ),
}


class Said(str):
    """A sentence in English with the same in Chinese, from a part of the judge that does not know who reads it."""

    chinese = ""


def said(english: str, chinese: str) -> Said:
    sentence = Said(english)
    sentence.chinese = chinese
    return sentence


class Words:
    """The sentences in one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._index = LANGUAGES.index(language)

    def __call__(self, key: str, **values: object) -> str:
        return WORDS[key][self._index].format(**values)

    def of(self, text: str, chinese: Mapping[str, str] | None = None) -> str:
        """A text that is there in English, in this language where that is known."""
        if self.language == "en":
            return text
        return text.chinese if isinstance(text, Said) else (chinese or {}).get(text, text)

    def verdict(self, verdict: str) -> str:
        return f"{verdict} {self(verdict)}"


def system_language() -> str:
    """zh where the system speaks Chinese, else en."""
    names = [os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG")]
    name = next(filter(None, names), None) or locale.getlocale()[0] or ""
    return "zh" if name.lower().startswith(("zh", "chinese")) else "en"
