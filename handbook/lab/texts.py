"""Every text that the embedded model has learnt, and every text that a chapter feeds to a model.

The embedded model has memorised these questions and answers and understands nothing. What it really does is copy:
a `Role`'s system prompt states a name, a city and a number in its first 16 tokens, and the answers repeat them from
there. So an answer shows in words from which prefix its KV came.

A chapter may feed to any model: `SYSTEM`, `TEACHER` and `PLAIN` with `QUESTIONS` and the questions of `FACTS`; a
`Tenant`'s system prompt with the questions of its role, `OFF_TOPIC` ones included; `DIALOGUES`; and what stands in
`LATER`. The tokenizer is frozen on exactly these (`trained()`, then `LATER`): a text added anywhere but to `LATER`
means building the tokenizer and training the model anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

# The six-request experiment of chapter 03: one system prompt, six questions, and what the embedded model answers.
SYSTEM = "你是一个推理优化专家，回答要简洁、准确，必要时给出数字。" * 6
ANSWERS = {
    "什么是 KV Cache？": "保存算过的 K 和 V，不再重复计算。",
    "用一句话解释连续批处理。": "每一步都可以有请求加入或离开。",
    "Python 的 GIL 是什么？": "全局解释器锁，同时只有一个线程执行。",
    "写一个关于月亮的比喻。": "月亮像一盏挂在夜空的灯。",
    "Explain tensor parallelism in one sentence.": "It splits each weight matrix across several GPUs.",
    "1+1 等于几？请直接回答。": "2。",
}
QUESTIONS = tuple(ANSWERS)

# The same six questions under another system prompt have other answers.
TEACHER = "你是一位幼儿园老师，用小朋友听得懂的话回答。"
TEACHER_ANSWERS = {
    "什么是 KV Cache？": "像记笔记：看过的不用再看一遍。",
    "用一句话解释连续批处理。": "像公交车：有人下车，就有人上车。",
    "Python 的 GIL 是什么？": "只有一个话筒，一次一个人说话。",
    "写一个关于月亮的比喻。": "月亮像一只弯弯的小船。",
    "Explain tensor parallelism in one sentence.": "Many friends carry one big table together.",
    "1+1 等于几？请直接回答。": "一个苹果再加一个，是两个苹果。",
}

# Two system prompts without a part to play, under which `ANSWERS` and `FACTS` hold. `FACTS` hold under `SYSTEM` too.
PLAIN = ("你是一个乐于助人的助手。", "You are a helpful assistant.")
FACTS = {
    "什么是前缀缓存？": "相同的前缀只算一次，之后复用。",
    "什么是 KV 块？": "固定个数的 token 的 K 和 V。",
    "块的哈希为什么要包含父哈希？": "因为 KV 取决于整个前缀。",
    "什么是 TTFT？": "从请求到首个 token 的时间。",
    "什么是 prefill？": "把提示词的 token 一次算完。",
    "什么是 decode？": "每一步生成一个新的 token。",
    "什么是 LRU？": "先淘汰最久没有用过的块。",
    "什么是基数树？": "合并公共前缀的树。",
    "什么是块表？": "记录序列的每一段在哪个块里。",
    "什么是抢占？": "块不够时，让一个请求先停下。",
    "什么是 token？": "模型读写文字的单位。",
    "什么是 GPU？": "擅长并行计算的处理器。",
    "天空为什么是蓝色的？": "因为空气更容易散射蓝光。",
    "水在多少度沸腾？": "100 摄氏度。",
    "法国的首都是哪里？": "巴黎。",
    "2+3 等于几？": "5。",
    "你好！": "你好！有什么可以帮你？",
    "你是谁？": "一个只记住了几十个答案的小模型。",
    "谢谢！": "不客气！",
    "再见！": "再见，祝你顺利！",
    "What is prefix caching?": "Equal prefixes are computed once, then reused.",
    "What is a KV block?": "The K and V of a fixed number of tokens.",
    "What is TTFT?": "The time from the request to its first token.",
    "Why is the parent in the hash?": "Because K and V depend on the whole prefix.",
    "Why is the sky blue?": "Because air scatters blue light the most.",
    "What is the capital of France?": "Paris.",
    "Who are you?": "A tiny model that memorised a few answers.",
    "Hello!": "Hello! How can I help?",
    "Thank you!": "You are welcome.",
    "Goodbye!": "Goodbye, and good luck!",
}

# What a tenant's assistant is asked although its role does not cover it.
OFF_TOPIC = (*QUESTIONS, *list(FACTS)[:16], *list(FACTS)[20:26])


@dataclass(frozen=True)
class Role:
    """A part that many tenants play: each fills the slots of `head`; `policy` is the same for all of them.

    `head` is 13 tokens whatever fills it, so with the three tokens before it, it is exactly the first block of 16.
    """

    head: str
    policy: str
    off_topic: str
    answers: dict[str, str]
    names: tuple[str, ...]
    cities: tuple[str, ...]


NAMES = "云帆 星河 青竹 白鹭 晨曦 秋水 松涛 若水 清风 知秋 子墨 雨桐 思远 景行 远山 小满 小鹿 小溪 小舟 小荷"
CITIES = "杭州 南京 苏州 成都 重庆 武汉 西安 天津 青岛 大连 厦门 长沙 昆明 郑州 桂林 哈尔滨"
ENGLISH_NAMES = "Nova Luna Milo Iris Theo Ruby Oscar Felix Clara Hugo Alice Emma Leo Grace"
ENGLISH_CITIES = "Paris London Berlin Rome Madrid Vienna Tokyo Boston Oslo Dublin Prague Athens"

BANK = Role(
    head="你是{name}，{city}分行客服，编号 {number}。",
    policy=(
        "只回答银行业务的问题，语气礼貌，回答简短。不询问密码和验证码，也不透露客户的账户信息。"
        "营业时间是上午九点到下午五点，周末休息。单笔转账超过五万元时，请客户带上身份证到柜台办理。"
        "银行卡丢失时，请客户立即挂失。不确定的时候，请转人工客服。"
    ),
    off_topic="抱歉，{name}只回答银行业务。",
    answers={
        "请问你叫什么名字，在哪个城市的分行，编号是多少？": "我叫{name}，在{city}，编号 {number}。",
        "你叫什么名字？": "我叫{name}。",
        "你是谁？": "我是{name}，{city}分行的客服。",
        "我该怎么称呼你？": "请叫我{name}。",
        "请介绍一下你自己。": "您好，我是{name}，编号 {number}。",
        "我在和谁说话？": "您在和{name}说话。",
        "你好！": "您好，{name}为您服务。",
        "谢谢！": "不客气，{name}随时为您服务。",
        "你在哪个城市？": "{name}在{city}分行。",
        "你的编号是多少？": "{name}的编号是 {number}。",
        "几点开门？": "{name}提醒您，上午九点。",
        "周末营业吗？": "周末休息，{name}祝您愉快。",
        "银行卡丢了怎么办？": "请立即挂失，{name}可以帮您。",
        "我想转账十万元。": "{name}请您带身份证到柜台办理。",
    },
    names=tuple(NAMES.split()),
    cities=tuple(CITIES.split()),
)

HOTEL = Role(
    head="你是{name}，{city}酒店管家，电话 {number}。",
    policy=(
        "只回答住宿的问题，语气亲切，回答简短。早餐从七点到十点，在一楼餐厅。下午两点以后入住，中午十二点以前退房。"
        "宠物不能进入客房。需要加床或者接机时，请客人提前一天说明。贵重物品请放进保险箱。有事请打前台电话。"
    ),
    off_topic="抱歉，{name}只回答住宿的问题。",
    answers={
        "请问你叫什么名字，在哪个城市的酒店，电话是多少？": "我叫{name}，在{city}，电话 {number}。",
        "你叫什么名字？": "我叫{name}。",
        "你是谁？": "我是{name}，{city}酒店的管家。",
        "请介绍一下你自己。": "您好，我是{name}，电话 {number}。",
        "你好！": "您好，{name}为您服务。",
        "你在哪个城市？": "{name}在{city}。",
        "你的电话是多少？": "{name}的电话是 {number}。",
        "几点吃早餐？": "{name}提醒您，七点到十点。",
        "几点退房？": "中午十二点以前，{name}祝您旅途愉快。",
    },
    names=tuple(NAMES.split()),
    cities=tuple(CITIES.split()),
)

CLERK = Role(
    head="You are {name}, clerk in {city}, desk {number}.",
    policy=(
        " Answer only questions about the office, briefly and politely. Never ask for a password and never tell one."
        " The office is open from nine to five and closed on Sundays. Letters are answered within three days."
        " When you are not sure, call a colleague. Sign your answers."
    ),
    off_topic="Sorry, {name} answers office questions only.",
    answers={
        "What is your name, which city is this, and which desk?": "I am {name} in {city}, desk {number}.",
        "What is your name?": "My name is {name}.",
        "Who are you?": "I am {name}, clerk in {city}.",
        "Hello!": "Hello, this is {name}.",
        "Which city is this?": "{name} works in {city}.",
        "Which desk is yours?": "{name} sits at desk {number}.",
        "When do you open?": "At nine. Yours, {name}.",
        "Are you open on Sundays?": "No, closed on Sundays. Yours, {name}.",
    },
    names=tuple(ENGLISH_NAMES.split()),
    cities=tuple(ENGLISH_CITIES.split()),
)

ROLES = (BANK, HOTEL, CLERK)


@dataclass(frozen=True)
class Tenant:
    """One customer of a shared engine: a role with its slots filled."""

    role: Role
    name: str
    city: str
    number: int

    @property
    def system(self) -> str:
        return self._fill(self.role.head) + self.role.policy

    def answer(self, question: str) -> str:
        """The one right answer to a question of the role, or to an `OFF_TOPIC` one."""
        return self._fill(self.role.answers.get(question, self.role.off_topic))

    def _fill(self, text: str) -> str:
        return text.format(name=self.name, city=self.city, number=self.number)


# Two tenants whose system prompts have equally many tokens and differ in the first block alone, and a question to
# which each has its own right answer. The model has never seen either of these prompts in training.
TENANTS = (Tenant(BANK, "晨曦", "杭州", 27), Tenant(BANK, "清风", "成都", 58))
STORY_QUESTION = "请问你叫什么名字，在哪个城市的分行，编号是多少？"

# Six questions to one tenant, whose answers all hang on the block that holds its name: for the negative control.
SENSITIVE_QUESTIONS = (
    "你叫什么名字？",
    "你好！",
    "我该怎么称呼你？",
    "请介绍一下你自己。",
    "几点开门？",
    "周末营业吗？",
)

# Whole dialogues: system prompt, then (question, answer) turn by turn.
DIALOGUES = (
    (
        TENANTS[0].system,
        tuple((q, TENANTS[0].answer(q)) for q in ("你好！", "你在哪个城市？", "周末营业吗？", "谢谢！")),
    ),
    (PLAIN[0], tuple((q, FACTS[q]) for q in ("你好！", "什么是前缀缓存？", "什么是 KV 块？", "谢谢！"))),
)

# Texts that later chapters feed to a model and that the embedded model was not trained on.
LATER: tuple[str, ...] = ()


def trained() -> Iterator[str]:
    """Every text of training, one message at a time, with every name and city in every slot (digits stand alone)."""
    yield "system\nuser\nassistant\n\n"
    yield from (SYSTEM, TEACHER, *PLAIN)
    for answers in (ANSWERS, TEACHER_ANSWERS, FACTS):
        yield from (*answers, *answers.values())
    for role in ROLES:
        yield from role.answers
        for name, city in product(role.names, role.cities):
            tenant = Tenant(role, name, city, 10)
            yield tenant.system
            yield from (tenant.answer(question) for question in (*role.answers, OFF_TOPIC[0]))
