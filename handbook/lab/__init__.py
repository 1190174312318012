"""What the chapters use and do not teach: weaving, models, drawing, timing."""

import warnings

# In a notebook tqdm, which transformers imports, would ask for ipywidgets: nothing here needs them.
warnings.filterwarnings("ignore", message="IProgress not found")
